// What net::serve reports about its connections: the message of a failure, the dump, the stop.

#include "serve_support.hpp"

#include <memory>
#include <string>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::connect_and_echo;
using coil_test::echo;
using coil_test::echo_here;
using coil_test::serve_and;
using net::endpoint;

namespace {

struct fails_in_a_call {
    /// Waits for a byte, and then for a reset.
    static task<> receive(net::socket& from) {
        char c;
        EXPECT_EQ((co_await from.recv({&c, 1})), 1);
        EXPECT_EQ((co_await from.send({&c, 1})), 1);
        (co_await from.recv({&c, 1})).value();
    }
    static task<> session_that_calls(net::socket peer) { co_await receive(peer); }
    static task<> session_alone(net::socket peer) {
        char c;
        EXPECT_EQ((co_await peer.recv({&c, 1})), 1);
        EXPECT_EQ((co_await peer.send({&c, 1})), 1);
        (co_await peer.recv({&c, 1})).value();
    }
};

/// Resets a connection; returns what the server says about it on stderr, and the client's address.
template <class Handler>
std::pair<std::string, std::string> report_of_a_reset(Handler handler, net::serve_options options) {
    std::string address;
    struct client {
        std::string& mine;
        std::shared_ptr<net::serve_meter> meter;
        task<> operator()(endpoint where, join_handle<void>&) const {
            net::socket s = net::socket::create_tcp();
            EXPECT_EQ(co_await s.connect(where), 0);
            mine = s.local_address().to_string();
            char c = 'x';
            EXPECT_EQ((co_await (s.send({&c, 1}) && s.recv({&c, 1}))), 1);
            EXPECT_EQ(s.set_linger(0s), 0);
            co_await s.close();
            while (meter->metrics().open > 0) {
                co_await sleep_for(1ms);
            }
        }
    };
    options.meter = std::make_shared<net::serve_meter>();
    runtime_options contexts;
    contexts.contexts = 1;
    contexts.context.name = "chat";
    runtime rt(contexts);
    testing::internal::CaptureStderr();
    serve_and(rt, {"127.0.0.1", 0}, handler, options, client{address, options.meter});
    return {testing::internal::GetCapturedStderr(), address};
}

TEST(NetServe, G12_TheMessageOfAFailureNamesTheClientAndTheHandler) {
    for (const auto idle : {0ms, 3'600'000ms}) {
        net::serve_options options;
        options.idle = idle;
        const auto [alone, client] = report_of_a_reset(fails_in_a_call::session_alone, options);
        EXPECT_NE(alone.find(": task 'client " + client + "': an unhandled exception: "),
                  std::string::npos)
            << alone;
        EXPECT_NE(alone.find("Connection reset by peer"), std::string::npos) << alone;
        EXPECT_NE(alone.find("session_alone(coil::net::socket)"), std::string::npos) << alone;
        EXPECT_EQ(alone.find("awaits:"), std::string::npos) << alone;
        options.name = "session";
        const auto [nested, other] =
            report_of_a_reset(fails_in_a_call::session_that_calls, options);
        EXPECT_NE(nested.find(": task 'session, client " + other + "': an unhandled exception: "),
                  std::string::npos)
            << nested;
        const auto awaits = nested.find("awaits:");
        ASSERT_NE(awaits, std::string::npos) << nested;
        EXPECT_LT(nested.find("session_that_calls(coil::net::socket)"), awaits) << nested;
        EXPECT_NE(nested.find("receive(coil::net::socket&)", awaits), std::string::npos) << nested;
        EXPECT_NE(nested.find("session_that_calls(", awaits), std::string::npos) << nested;
    }
}

TEST(NetServe, TheDumpShowsTheNameOfItsConnections) {
    runtime rt(1);
    net::serve_options options;
    options.name = "session";
    options.grace = 0ms;
    std::string text;
    struct client {
        std::string& dumped;
        task<> operator()(endpoint where, join_handle<void>&) const {
            net::socket s = net::socket::create_tcp();
            co_await connect_and_echo(s, where);
            dumped = this_context().dump_tasks();
        }
    };
    serve_and(rt, {"127.0.0.1", 0}, echo, options, client{text});
    EXPECT_NE(text.find(" 'session'"), std::string::npos) << text;
}

TEST(NetServe, AHandlerWaitsForTheStopInAWhenAny) {
    auto polite = [](net::socket peer, inplace_stop_token stopping) -> task<> {
        event stop;
        const inplace_stop_callback at_stop(stopping, [&stop]() noexcept { stop.set(); });
        const auto first = co_await when_any(echo_here(peer), stop.wait());
        EXPECT_EQ(first.index, 1U);
    };
    runtime rt(1); // with the default grace of ten seconds
    const auto meter = std::make_shared<net::serve_meter>();
    net::serve_options options;
    options.meter = meter;
    struct client {
        task<> operator()(endpoint where, join_handle<void>& server) const {
            net::socket s = net::socket::create_tcp();
            co_await connect_and_echo(s, where);
            char c = 'x';
            server.cancel();
            EXPECT_EQ((co_await s.recv({&c, 1})), 0);
        }
    };
    serve_and(rt, {"127.0.0.1", 0}, polite, options, client{});
    EXPECT_EQ(meter->metrics().grace_ended, 0U);
}

} // namespace
