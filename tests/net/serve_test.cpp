// net::serve: all contexts, limits, idle connections, graceful stop and its deadline.

#include "serve_support.hpp"
#include "support/descriptors.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <sys/utsname.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::connect_and_echo;
using coil_test::echo;
using coil_test::serve_and;
using net::endpoint;

namespace {

/// serve() accepts a class that is derived from runtime.
class derived_runtime : public runtime {
    using runtime::runtime;
};
static_assert(requires(derived_runtime& on, task<> (*handler)(net::socket)) {
    net::serve(on, 8080, handler);
});

task<bool> ask(endpoint where, std::string text) {
    net::socket s = net::socket::create_tcp(where.family());
    if (co_await s.connect(where) != 0) {
        co_return false;
    }
    co_await s.send_all(text);
    std::string got(text.size(), '\0');
    co_await s.recv_all(got);
    co_return got == text;
}

struct ask_often {
    task<> operator()(endpoint where, join_handle<void>&) const {
        for (int i = 0; i < 100; ++i) {
            EXPECT_TRUE(co_await ask(where, "request " + std::to_string(i)));
        }
    }
};

TEST(NetServe, ServesOnAllContexts) {
    runtime rt(3);
    serve_and(rt, {"127.0.0.1", 0}, echo, {}, ask_often{});
    serve_and(rt, {"::1", 0}, echo, {}, ask_often{});
}

struct ask_locally {
    task<> operator()(endpoint where, join_handle<void>&) const {
        net::socket s = net::socket::create_unix();
        EXPECT_EQ(co_await s.connect(where), 0);
        EXPECT_EQ(co_await s.send("x"), 1);
        char c;
        EXPECT_EQ((co_await s.recv({&c, 1})), 1);
    }
};

TEST(NetServe, ServesOnAUnixSocket) {
    runtime rt(2);
    serve_and(rt, net::unix_address::abstract("coil-serve-" + std::to_string(::getpid())), echo, {},
              ask_locally{});
}

/// Whether the kernel prefers acceptors by SO_INCOMING_CPU.
bool prefers_by_processor() {
    ::utsname name{};
    int major = 0;
    int minor = 0;
    return ::uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
           major * 100 + minor >= 602;
}

task<> reconnect(endpoint where) {
    for (int i = 0; i < 30; ++i) {
        EXPECT_TRUE(co_await ask(where, "x"));
    }
}

TEST(NetServe, AcceptorsPreferTheProcessorOfTheirContext) {
    runtime_options options;
    options.contexts = 2;
    options.pin = true;
    runtime rt(options);
    const int first = rt.context(0).options().cpu_affinity;
    const int second = rt.context(1).options().cpu_affinity;
    if (first == second || !prefers_by_processor()) {
        GTEST_SKIP() << "one processor, or a kernel without the preference";
    }
    std::atomic<int> known = 0;
    auto handler = [&](net::socket peer) {
        const std::optional<int> from = peer.incoming_cpu();
        if (from == first || from == second) {
            ++known;
            EXPECT_EQ(&this_context(), &rt.context(from == first ? 0 : 1));
        }
        return echo(std::move(peer));
    };
    net::serve_options limits;
    limits.incoming_cpu = true;
    serve_and(rt, {"127.0.0.1", 0}, handler, limits,
              [&](endpoint at, join_handle<void>&) -> task<> {
                  co_await reconnect(at);
                  co_await rt.context(1).spawn(reconnect(at));
                  co_await rt.context(0).spawn(reconnect(at));
              });
    EXPECT_GT(known, 0);
}

TEST(NetServe, AnAddressInUseThrows) {
    runtime rt(2);
    const net::acceptor taken("127.0.0.1:0");
    EXPECT_THROW(rt.block_on(net::serve(rt, taken.local_endpoint(), echo)), std::system_error);
}

struct ask_beyond_the_limit {
    task<> operator()(endpoint where, join_handle<void>&) const {
        std::vector<net::socket> clients;
        for (int i = 0; i < 5; ++i) {
            clients.push_back(net::socket::create_tcp());
            EXPECT_EQ(co_await clients.back().connect(where), 0);
            EXPECT_EQ(co_await clients.back().send("x"), 1);
        }
        // Two are served at a time, in the order in which they connected.
        for (std::size_t i = 0; i < clients.size(); ++i) {
            char c;
            EXPECT_EQ((co_await clients[i].recv({&c, 1})), 1);
            if (i + 2 < clients.size()) {
                EXPECT_EQ((co_await clients[i + 2].recv({&c, 1}, MSG_DONTWAIT)), -EAGAIN) << i;
            }
            EXPECT_EQ(co_await clients[i].close(), 0);
        }
    }
};

TEST(NetServe, G6_NoMoreThanMaxConnections) {
    static std::atomic<int> now;
    static std::atomic<int> most;
    now = most = 0;
    auto counted = [](net::socket peer) -> task<> {
        most = std::max<int>(most, ++now);
        co_await echo(std::move(peer));
        --now;
    };
    runtime rt(1);
    net::serve_options options;
    options.max_connections = 2;
    options.meter = std::make_shared<net::serve_meter>();
    serve_and(rt, {"127.0.0.1", 0}, counted, options, ask_beyond_the_limit{});
    EXPECT_EQ(most, 2);
    const net::serve_metrics m = options.meter->metrics();
    EXPECT_EQ(m.accepted, 5U);
    EXPECT_GE(m.held_back, 1U);
    EXPECT_LE(m.held_back, 3U);
    EXPECT_EQ(m.open, 0U);
}

struct stay_idle {
    task<> operator()(endpoint where, join_handle<void>&) const {
        net::socket s = net::socket::create_tcp();
        EXPECT_EQ(co_await s.connect(where), 0);
        char c = 'x';
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 10; ++i) { // in total longer than the limit
            co_await sleep_for(20ms);
            EXPECT_EQ((co_await s.send({&c, 1})), 1);
            EXPECT_EQ((co_await s.recv({&c, 1})), 1); // it is not idle
        }
        EXPECT_EQ((co_await s.recv({&c, 1})), 0); // now it has been idle for too long
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
    }
};

TEST(NetServe, AnIdleConnectionIsEnded) {
    runtime rt(1);
    net::serve_options options;
    options.idle = 150ms;
    options.meter = std::make_shared<net::serve_meter>();
    serve_and(rt, {"127.0.0.1", 0}, echo, options, stay_idle{});
    EXPECT_EQ(options.meter->metrics().idle_ended, 1U);
}

struct stop_in_the_middle {
    task<> operator()(endpoint where, join_handle<void>& server) const {
        net::socket s = net::socket::create_tcp();
        co_await connect_and_echo(s, where);
        char c = 'x';
        server.cancel();
        // The server no longer listens, but existing connections continue.
        for (int refused = 0; refused != -ECONNREFUSED;) {
            net::socket other = net::socket::create_tcp();
            refused = co_await other.connect(where);
        }
        for (int i = 0; i < 10; ++i) {
            EXPECT_EQ((co_await (s.send({&c, 1}) && s.recv({&c, 1}))), 1);
        }
        EXPECT_FALSE(server.done());
    }
};

TEST(NetServe, G5_StopsGracefully) {
    runtime rt(2);
    serve_and(rt, {"127.0.0.1", 0}, echo, {}, stop_in_the_middle{});
}

struct never_end {
    task<> operator()(endpoint where, join_handle<void>& server) const {
        net::socket s = net::socket::create_tcp();
        co_await connect_and_echo(s, where);
        char c = 'x';
        server.cancel();
        EXPECT_EQ((co_await s.recv({&c, 1})), 0); // the grace period is over
    }
};

TEST(NetServe, G5_AfterTheGraceConnectionsAreCancelled) {
    runtime rt(2);
    net::serve_options options;
    options.grace = 20ms;
    options.meter = std::make_shared<net::serve_meter>();
    serve_and(rt, {"127.0.0.1", 0}, echo, options, never_end{});
    EXPECT_EQ(options.meter->metrics().grace_ended, 1U);
    EXPECT_EQ(options.meter->metrics().hard_ended, 0U);
}

task<> echo_shielded(net::socket peer) { co_await shield(echo(std::move(peer))); }

TEST(NetServe, G5_AfterTheHardDeadlineConnectionsAreDestroyed) {
    runtime rt(2);
    net::serve_options options;
    options.grace = 20ms;
    options.hard_deadline = 20ms;
    options.meter = std::make_shared<net::serve_meter>();
    serve_and(rt, {"127.0.0.1", 0}, echo_shielded, options, never_end{});
    const net::serve_metrics m = options.meter->metrics();
    EXPECT_EQ(m.grace_ended, 1U);
    EXPECT_EQ(m.hard_ended, 1U);
    EXPECT_EQ(m.open, 0U);
}

TEST(NetServe, AHandlerMayObserveThatTheServerStops) {
    static constexpr auto receive = [](net::socket& from) -> task<int> {
        char c;
        const int n = co_await from.recv({&c, 1});
        co_return n;
    };
    auto polite = [](net::socket peer, inplace_stop_token stopping) -> task<> {
        char c;
        EXPECT_EQ((co_await peer.recv({&c, 1})), 1);
        EXPECT_EQ((co_await peer.send({&c, 1})), 1);
        const int n = co_await with_stop_token(receive(peer), stopping);
        EXPECT_EQ(n, -ECANCELED);
    };
    runtime rt(1); // with the default grace of ten seconds
    const auto begin = std::chrono::steady_clock::now();
    serve_and(rt, {"127.0.0.1", 0}, polite, {}, never_end{});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(NetServe, G12_AnExceptionEndsItsConnectionAlone) {
    std::atomic<int> reported = 0;
    runtime_options options;
    options.contexts = 1;
    options.context.on_unhandled_exception = [&](std::exception_ptr) { ++reported; };
    runtime rt(options);
    auto fragile = [](net::socket peer) -> task<> {
        char c;
        EXPECT_EQ((co_await peer.recv({&c, 1})), 1);
        throw std::runtime_error("no");
    };
    struct client {
        task<> operator()(endpoint where, join_handle<void>&) const {
            for (int i = 0; i < 3; ++i) {
                net::socket s = net::socket::create_tcp();
                EXPECT_EQ(co_await s.connect(where), 0);
                char c = 'x';
                EXPECT_EQ((co_await (s.send({&c, 1}) && s.recv({&c, 1}))), 0);
            }
        }
    };
    net::serve_options limits;
    limits.meter = std::make_shared<net::serve_meter>();
    serve_and(rt, {"127.0.0.1", 0}, fragile, limits, client{});
    EXPECT_EQ(reported, 3);
    EXPECT_EQ(limits.meter->metrics().failed, 3U);
}

TEST(NetServe, ACancellationWithoutAStopRequestDoesNotEndIt) {
    struct client {
        task<> operator()(endpoint where, join_handle<void>&) const {
            EXPECT_GE(co_await io::cancel_all(), 1); // the accept
            EXPECT_TRUE(co_await ask(where, "still there"));
        }
    };
    runtime rt(1);
    serve_and(rt, {"127.0.0.1", 0}, echo, {}, client{});
}

/// Makes accept(2) fail with EINVAL on the listening sockets, except for the first `first` ones.
void shut_listeners_down(int first = 0) {
    for (int fd = 0; fd < 1024; ++fd) {
        int listens = 0;
        ::socklen_t size = sizeof listens;
        if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
            --first < 0) {
            ::shutdown(fd, SHUT_RDWR);
        }
    }
}

/// Serves with the given number of contexts until accept(2) fails.
void expect_accept_failure(unsigned contexts, int first_failed) {
    runtime rt(contexts);
    net::serve_options options;
    options.on_listening = [=](const endpoint&) { shut_listeners_down(first_failed); };
    try {
        rt.block_on(net::serve(rt, {"127.0.0.1", 0}, echo, options));
        ADD_FAILURE() << "serve() has returned";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code().value(), EINVAL);
    }
}

TEST(NetServe, APermanentFailureOfAcceptIsThrown) { expect_accept_failure(1, 0); }

TEST(NetServe, AFailureOfOneListenerEndsAll) {
    for (int first = 0; first < 3; ++first) {
        expect_accept_failure(3, first);
    }
}

TEST(NetServe, AnExceptionOfOnListeningEndsIt) {
    runtime rt(2);
    net::serve_options options;
    options.on_listening = [](const endpoint&) { throw std::runtime_error("not here"); };
    EXPECT_THROW(rt.block_on(net::serve(rt, {"127.0.0.1", 0}, echo, options)), std::runtime_error);
}

TEST(NetServe, ADestroyedServerEndsWithoutGrace) {
    runtime rt(3);
    const auto meter = std::make_shared<net::serve_meter>();
    auto main = [](runtime& on, std::shared_ptr<net::serve_meter> counted) -> task<> {
        oneshot<endpoint> listening;
        net::serve_options options;
        options.meter = counted;
        options.on_listening = [&](const endpoint& e) { listening.send(e); };
        supervisor owner;
        owner.spawn(net::serve(on, {"127.0.0.1", 0}, echo, options));
        const auto where = co_await listening.recv();
        std::vector<net::socket> clients;
        for (int i = 0; i < 6; ++i) {
            clients.push_back(net::socket::create_tcp());
            net::socket& s = clients.back();
            EXPECT_EQ(co_await s.connect(*where), 0);
            char c = 'x';
            EXPECT_EQ((co_await (s.send({&c, 1}) && s.recv({&c, 1}))), 1);
        }
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_FALSE(co_await owner.join(0ms));
        for (net::socket& s : clients) {
            char c;
            EXPECT_EQ((co_await s.recv({&c, 1})), 0);
        }
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s); // there is no grace period
    };
    rt.block_on(main(rt, meter));
    EXPECT_EQ(meter->metrics().accepted, 6U);
}

TEST(NetServe, ItsMetricsAsText) {
    net::serve_meter meter;
    meter.count_accepted();
    meter.count_accepted();
    meter.count_closed();
    meter.count_hard_ended(3);
    EXPECT_EQ(
        to_string(meter.metrics()),
        "connections: 2 accepted, 1 open, 0 held back, 0 moved, 0 failed; ended: 0 idle, 0 after "
        "the grace period, 3 at the hard deadline\n");
    std::string page;
    write_prometheus(page, meter.metrics(), {{"server", "chat"}});
    EXPECT_NE(page.find("# TYPE coil_serve_connections gauge\n"
                        "coil_serve_connections{server=\"chat\"} 1\n"),
              std::string::npos)
        << page;
    EXPECT_NE(page.find("# TYPE coil_serve_hard_ended_total counter\n"
                        "coil_serve_hard_ended_total{server=\"chat\"} 3\n"),
              std::string::npos)
        << page;
    EXPECT_THROW(write_prometheus(page, meter.metrics(), {{"le", "x"}}), std::invalid_argument);
}

} // namespace
