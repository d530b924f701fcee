// copy and duplex: sizes, failures, half-close, cancellation, peers that trickle and vanish.

#include "stream/support.hpp"
#include "support/descriptors.hpp"

#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <string>
#include <system_error>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

TEST(StreamCopy, EverySizeOfPieces) {
    auto main = [](std::size_t in, std::size_t out) -> task<> {
        const std::string text = pattern(100);
        script_source source(text, in);
        script_sink sink(out);
        EXPECT_EQ(co_await copy(source, sink), 100U);
        EXPECT_EQ(sink.text, text);
        EXPECT_FALSE(sink.is_shut_down);
    };
    for (const std::size_t in : {1, 2, 7, 99, 100, 1000}) {
        for (const std::size_t out : {1, 3, 50, 100, 1000}) {
            coil::run(main(in, out));
        }
    }
}

TEST(StreamCopy, EachCallFailedOnceGivesItsError) {
    auto main = [](int read_fails, int write_fails) -> task<std::error_code> {
        script_source source(pattern(10), 3, read_fails, -ECONNRESET);
        script_sink sink(2, write_fails, -EPIPE);
        try {
            co_await copy(source, sink);
        } catch (const std::system_error& e) {
            co_return e.code();
        }
        co_return std::error_code();
    };
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(coil::run(main(i, -1)), std::errc::connection_reset) << i;
        EXPECT_EQ(coil::run(main(-1, i)), std::errc::broken_pipe) << i;
    }
    EXPECT_EQ(coil::run(main(-1, -1)), std::error_code());
}

TEST(StreamCopy, FromAFileIntoAPipeAndASocket) {
    auto main = []() -> task<> {
        const std::string text = pattern(300'000);
        fs::file file(::memfd_create("copy", MFD_CLOEXEC));
        EXPECT_EQ(co_await file.write_all_at(text, 0), static_cast<int>(text.size()));
        auto [reader, writer] = make_pipe();
        auto [a, b] = net::socket::pair();
        auto send = [](fs::file from, pipe_end to) -> task<> {
            EXPECT_EQ(co_await copy(from, to), 300'000U);
        };
        auto forward = [](pipe_end from, net::socket to) -> task<> {
            EXPECT_EQ(co_await copy(from, to), 300'000U);
        };
        auto first = coil::spawn(send(std::move(file), std::move(writer)));
        auto second = coil::spawn(forward(std::move(reader), std::move(a)));
        std::string got(text.size(), '\0');
        EXPECT_EQ(co_await b.recv_all(got), static_cast<int>(text.size()));
        EXPECT_TRUE(got == text);
        char end;
        EXPECT_EQ((co_await b.recv({&end, 1})), 0);
        co_await first;
        co_await second;
    };
    coil::run(main());
}

task<duplex_counts> proxy(net::socket a, net::socket b) { co_return co_await duplex(a, b); }

TEST(StreamDuplex, HalfCloseGoesThrough) {
    auto main = []() -> task<> {
        auto [client, front] = net::socket::pair();
        auto [back, server] = net::socket::pair();
        auto running = coil::spawn(proxy(std::move(front), std::move(back)));
        EXPECT_EQ(co_await client.send_all("question"), 8);
        EXPECT_EQ(co_await client.shutdown_write(), 0);
        char buf[64];
        EXPECT_EQ((co_await server.recv_all({buf, 8})), 8);
        EXPECT_EQ(co_await server.recv(buf), 0) << "the client has nothing more to say";
        EXPECT_EQ(co_await server.send_all("a longer answer"), 15);
        EXPECT_EQ(co_await server.close(), 0);
        EXPECT_EQ((co_await client.recv_all(buf)), 15) << "until the end";
        const duplex_counts counts = co_await running;
        EXPECT_EQ(counts.a_to_b, 8U);
        EXPECT_EQ(counts.b_to_a, 15U);
    };
    coil::run(main());
}

TEST(StreamDuplex, APeerThatTricklesOneByteAtATime) {
    auto main = []() -> task<> {
        auto [client, front] = net::socket::pair();
        auto [back, server] = net::socket::pair();
        auto running = coil::spawn(proxy(std::move(front), std::move(back)));
        for (int i = 0; i < 100; ++i) {
            const char c = static_cast<char>(i);
            EXPECT_EQ((co_await client.send({&c, 1})), 1);
            char got = 0;
            EXPECT_EQ((co_await server.recv({&got, 1})), 1);
            EXPECT_EQ(got, c);
        }
        client = {};
        server = {};
        co_await running;
    };
    coil::run(main());
}

TEST(StreamDuplex, G3_CancelledEndsBothDirections) {
    auto main = []() -> task<> {
        auto [client, front] = net::socket::pair();
        auto [back, server] = net::socket::pair();
        auto running = coil::spawn(proxy(std::move(front), std::move(back)));
        co_await sleep_for(1ms);
        running.cancel();
        bool is_cancelled = false;
        try {
            co_await running;
        } catch (const std::system_error& e) {
            is_cancelled = e.code() == std::errc::operation_canceled;
        }
        EXPECT_TRUE(is_cancelled);
        char buf[4];
        EXPECT_EQ(co_await client.recv(buf), 0);
        EXPECT_EQ(co_await server.recv(buf), 0);
    };
    coil::run(main());
}

// ---- in a simulated world, with injected faults

namespace sim = coil::sim;

constexpr std::uint16_t proxy_port = 80;
constexpr std::uint16_t server_port = 81;

/// Calls `serve` for one connection after the other, even if accept() or a connection fails.
template <class Serve>
task<> serve_all(std::uint16_t port, Serve serve) {
    for (;;) {
        try {
            net::acceptor acceptor(port);
            while (net::socket peer = co_await acceptor.accept()) {
                co_await serve(std::move(peer));
            }
        } catch (const std::system_error&) {
            // the connection has failed, or there was no free descriptor
        }
        co_await yield();
    }
}

struct echo {
    task<> operator()(net::socket peer) const { co_await copy(peer, peer); }
};

struct forward {
    net::endpoint server;
    task<> operator()(net::socket peer) const {
        net::socket behind = net::socket::create_tcp();
        if (co_await behind.connect(server) == 0) {
            co_await duplex(peer, behind);
        }
    }
};

task<> echo_server() { return serve_all(server_port, echo{}); }
task<> proxy_server(net::endpoint server) { return serve_all(proxy_port, forward{server}); }

/// Returns whether the echo is complete. A truncated echo must still be a prefix of what was sent.
task<bool> ask(net::endpoint where, std::size_t size) {
    const std::string text = pattern(size);
    std::string got;
    net::socket s;
    try {
        s = net::socket::create_tcp();
    } catch (const std::system_error&) {
        co_return false;
    }
    if (co_await s.connect(where) != 0) {
        co_return false;
    }
    auto send = [](net::socket& to, const std::string& data) -> task<bool> {
        const bool all = co_await to.send_all(data) == static_cast<int>(data.size());
        while (co_await to.shutdown_write() == -ECANCELED) {
            // an injected fault; without the end of the stream the peer would wait forever
        }
        co_return all;
    };
    auto receive = [](net::socket& from, std::string& into) -> task<bool> {
        char buf[1000];
        for (;;) {
            const int n = co_await from.recv(buf);
            if (n <= 0) {
                co_return n == 0;
            }
            into.append(buf, static_cast<std::size_t>(n));
        }
    };
    auto [sent, received] = co_await when_all(send(s, text), receive(s, got));
    EXPECT_TRUE(text.starts_with(got));
    co_return sent&& received&& got == text;
}

TEST(StreamDuplex, AProxyInAWorldWithoutFaultsDeliversEverything) {
    sim::for_each_seed(20, [](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::timing();
        sim::world w{seed, options};
        w.host("server").co_spawn(echo_server());
        w.host("proxy").co_spawn(proxy_server(w.host("server").address(server_port)));
        w.run();
        auto done = w.host("client").spawn(ask(w.host("proxy").address(proxy_port), 50'000));
        EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h));
        EXPECT_TRUE(done.get());
    });
}

TEST(StreamDuplex, G4_UnderAllFaultsDataIsIntactAndNothingLeaks) {
    int complete = 0;
    sim::for_each_seed(100, [&](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::everything();
        sim::world w{seed, options};
        sim::host& middle = w.host("proxy");
        w.host("server").co_spawn(echo_server());
        middle.co_spawn(proxy_server(w.host("server").address(server_port)));
        w.run();
        for (int i = 0; i < 3; ++i) {
            auto done = w.host("client").spawn(ask(middle.address(proxy_port), 5'000));
            EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h));
            complete += done.done() && done.get() ? 1 : 0;
        }
        w.run_for(1h);
        EXPECT_LE(middle.open_descriptors().size(), 1U) << "only the acceptor";
    });
    EXPECT_GT(complete, 50) << "of 300";
}

TEST(StreamDuplex, G5_AProxyThatIsEndedAtAnyMomentLeavesNothing) {
    for (int step = 0; step < 3000; step += 97) {
        sim::world w{static_cast<std::uint64_t>(step) + 1};
        w.host("server").co_spawn(echo_server());
        w.host("proxy").co_spawn(proxy_server(w.host("server").address(server_port)));
        w.run();
        auto done = w.host("client").spawn(ask(w.host("proxy").address(proxy_port), 50'000));
        w.run_for(std::chrono::microseconds(step));
        w.host("proxy").end_contexts();
        EXPECT_TRUE(w.host("proxy").open_descriptors().empty()) << step;
        EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h)) << step;
    }
}

} // namespace
