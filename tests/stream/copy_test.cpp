// copy and duplex: sizes, failures, half-close, cancellation, peers that trickle and vanish.

#include "stream/support.hpp"
#include "support/descriptors.hpp"

#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>

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

TEST(StreamCopy, AnErrorOfAnyCallIsReported) {
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
        EXPECT_EQ(co_await server.recv(buf), 0); // the client has nothing more to say
        EXPECT_EQ(co_await server.send_all("a longer answer"), 15);
        EXPECT_EQ(co_await server.close(), 0);
        EXPECT_EQ((co_await client.recv_all(buf)), 15); // until the end
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

/// Sends `size` bytes that depend on their position and `seed`, in pieces of changing sizes.
task<> send_pattern(net::socket& to, std::size_t size, unsigned seed) {
    std::string piece;
    std::size_t step = 1;
    for (std::size_t at = 0; at < size;) {
        piece.resize(std::min(step, size - at));
        for (std::size_t i = 0; i < piece.size(); ++i) {
            piece[i] = static_cast<char>((at + i) * 31 + seed);
        }
        EXPECT_EQ(co_await to.send_all(piece), static_cast<int>(piece.size()));
        at += piece.size();
        step = step < 300'000 ? step * 3 : 1;
    }
    EXPECT_EQ(co_await to.shutdown_write(), 0);
}

task<> expect_pattern(net::socket& from, std::size_t size, unsigned seed) {
    std::string buffer(70'000, '\0');
    std::size_t at = 0;
    for (;;) {
        const int n = co_await from.recv({buffer.data(), buffer.size()});
        EXPECT_GE(n, 0);
        if (n <= 0) {
            break;
        }
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
            if (buffer[i] != static_cast<char>((at + i) * 31 + seed)) {
                ADD_FAILURE() << "byte " << at + i << " differs";
                co_return;
            }
        }
        at += static_cast<std::size_t>(n);
    }
    EXPECT_EQ(at, size);
}

bool blocks(const net::socket& s) {
    return (::fcntl(s.native_handle(), F_GETFL) & O_NONBLOCK) == 0;
}

// Large amounts are spliced and small ones copied. The sizes vary so that both happen.
TEST(StreamDuplex, SplicesMuchDataInBothDirections) {
    coil::run([]() -> task<> {
        auto [client, a] = net::socket::pair();
        auto [server, b] = net::socket::pair();
        constexpr std::size_t there = 9'000'001;
        constexpr std::size_t back = 5'000'003;
        auto proxy = spawn(duplex(a, b));
        co_await when_all(send_pattern(client, there, 1), expect_pattern(server, there, 1),
                          send_pattern(server, back, 2), expect_pattern(client, back, 2));
        const duplex_counts moved = co_await proxy;
        EXPECT_EQ(moved.a_to_b, there);
        EXPECT_EQ(moved.b_to_a, back);
        EXPECT_TRUE(blocks(a));
        EXPECT_TRUE(blocks(b));
    }());
}

task<> sends_much(net::socket& to) {
    const std::string much(32 << 20, 'x');
    (void)co_await to.send_all(much);
}

/// Waits until data from `a` that is not received fills the pipe of its duplex().
task<> fills_the_pipe(const net::socket& a) {
    for (int i = 0; i < 10'000 && blocks(a); ++i) {
        co_await sleep_for(1ms);
    }
    EXPECT_FALSE(blocks(a)) << "it does not splice";
    co_await sleep_for(20ms);
}

// The receiver does not read: the pipe is full when the proxy is cancelled.
TEST(StreamDuplex, G3_CancelledWhileItSplices) {
    const std::set<int> before = coil_test::open_descriptors();
    coil::run([]() -> task<> {
        auto [client, a] = net::socket::pair();
        auto [server, b] = net::socket::pair();
        auto proxy = spawn(duplex(a, b));
        auto sender = spawn(sends_much(client));
        co_await fills_the_pipe(a);
        proxy.cancel();
        try {
            co_await proxy;
            ADD_FAILURE() << "the proxy has ended without an error";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
        EXPECT_TRUE(blocks(a));
        EXPECT_TRUE(blocks(b));
        sender.cancel();
        co_await sender;
    }());
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

/// Two ends of a TCP connection.
task<std::pair<net::socket, net::socket>> tcp_connection() {
    net::acceptor listener(net::inet_address("127.0.0.1", 0));
    net::socket one = net::socket::create_tcp();
    EXPECT_EQ(co_await one.connect(listener.local_address()), 0);
    net::socket other = co_await listener.accept();
    co_return std::pair(std::move(one), std::move(other));
}

// splice(2) stops before urgent data, and returns the same there as at the end of a stream.
TEST(StreamDuplex, UrgentDataDoesNotEndIt) {
    coil::run([]() -> task<> {
        auto [client, a] = co_await tcp_connection();
        auto [server, b] = net::socket::pair();
        auto proxy = spawn(duplex(a, b));
        const std::string much(8 << 20, 'x');
        const std::string rest(100'000, 'y');
        auto sender = spawn(
            [](net::socket& to, const std::string& first, const std::string& second) -> task<> {
                co_await to.send_all(first);
                EXPECT_EQ(co_await io::send(to.native_handle(), const_buffer("!", 1), MSG_OOB), 1);
                co_await to.send_all(second);
                co_await to.shutdown_write();
            }(client, much, rest));
        std::size_t arrived = 0;
        std::vector<char> buf(1 << 16);
        for (int n; (n = co_await server.recv(buf)) > 0;) {
            arrived += static_cast<std::size_t>(n);
        }
        EXPECT_EQ(arrived, much.size() + rest.size());
        co_await sender;
        co_await server.shutdown_write();
        co_await proxy;
    }());
}

TEST(StreamDuplex, G6_AnIdleConnectionHasNoPipes) {
    coil::run([]() -> task<> {
        auto [client, a] = net::socket::pair();
        auto [server, b] = net::socket::pair();
        auto proxy = spawn(duplex(a, b));
        char byte = 'x';
        co_await client.send({&byte, 1});
        co_await server.recv({&byte, 1});
        const std::size_t idle = coil_test::open_descriptors().size();
        const std::string much(4 << 20, 'x');
        bool had_pipes = false;
        bool is_over = false;
        auto observer = spawn([](std::size_t before, bool& more, bool& over) -> task<> {
            while (!over) {
                more = more || coil_test::open_descriptors().size() > before;
                co_await yield();
            }
        }(idle, had_pipes, is_over));
        auto sender = spawn([](net::socket& to, const std::string& text) -> task<> {
            co_await to.send_all(text);
        }(client, much));
        std::string arrived(much.size(), ' ');
        EXPECT_EQ(co_await server.recv_all({arrived.data(), arrived.size()}), 4 << 20);
        EXPECT_EQ(arrived, much);
        co_await sender;
        is_over = true;
        co_await observer;
        EXPECT_TRUE(had_pipes) << "it does not splice";
        for (int i = 0; i < 5000 && coil_test::open_descriptors().size() > idle; ++i) {
            co_await sleep_for(1ms);
        }
        EXPECT_EQ(coil_test::open_descriptors().size(), idle);
        proxy.cancel();
        EXPECT_THROW(co_await proxy, std::system_error);
    }());
}

// splice(2) has no MSG_NOSIGNAL.
TEST(StreamDuplex, AClosedPeerRaisesNoSignal) {
    coil::run([]() -> task<> {
        static std::atomic<int> signals = 0;
        struct ::sigaction counting{};
        counting.sa_handler = [](int) { ++signals; };
        struct ::sigaction before{};
        ::sigaction(SIGPIPE, &counting, &before);
        auto [client, a] = net::socket::pair();
        auto [server, b] = net::socket::pair();
        auto proxy = spawn(duplex(a, b));
        auto sender = spawn(sends_much(client));
        co_await fills_the_pipe(a);
        server = net::socket();
        try {
            co_await proxy;
            ADD_FAILURE() << "the proxy has ended without an error";
        } catch (const std::system_error& e) {
            // The other direction may notice first that the peer left data unread.
            EXPECT_TRUE(e.code() == std::errc::broken_pipe ||
                        e.code() == std::errc::connection_reset)
                << e.what();
        }
        sender.cancel();
        co_await sender;
        ::sigaction(SIGPIPE, &before, nullptr);
        EXPECT_EQ(signals.load(), 0);
    }());
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
        EXPECT_LE(middle.open_descriptors().size(), 1U); // only the acceptor
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
