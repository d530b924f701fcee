// recv_multishot: the data is received completely and in order, with any pool and kernel.

#include "io/stream_support.hpp"

#include <algorithm>
#include <deque>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::listener;
using coil_test::random_source;
using coil_test::socket_pair;
using io_test::are_bytes_from;
using io_test::bytes_from;
using io_test::pool_of;
using io_test::put;
using io_test::some_turns;

namespace {

class RecvStream : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(RecvStream);

task<> send_all(int fd, std::uint64_t total, random_source random) {
    std::uint64_t sent = 0;
    while (sent < total) {
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(
            total - sent, random.one_in(4) ? random.between(1, 20000) : random.between(1, 200)));
        const std::string text = bytes_from(sent, size);
        const int n = co_await io::send(fd, text);
        if (n <= 0) {
            ADD_FAILURE() << "send: " << n;
            break;
        }
        sent += static_cast<std::uint64_t>(n);
        if (random.one_in(8)) {
            co_await yield();
        }
    }
    EXPECT_EQ(co_await io::shutdown(fd, SHUT_WR), 0);
}

/// Checks each piece, holds up to `most` pieces, and returns them in random order.
task<> receive_all(int fd, buffer_pool& pool, std::uint64_t total, unsigned most,
                   random_source random) {
    struct piece {
        std::uint64_t begin;
        buffer_lease lease;
    };
    std::vector<piece> held;
    const auto give_one_back = [&] {
        const unsigned which = random.below(static_cast<unsigned>(held.size()));
        EXPECT_TRUE(are_bytes_from(held[which].begin, held[which].lease.text()));
        std::swap(held[which], held.back());
        held.pop_back();
    };
    auto incoming = io::recv_multishot(fd, pool);
    std::uint64_t received = 0;
    for (;;) {
        auto chunk = co_await incoming.next();
        if (!chunk) {
            EXPECT_EQ(chunk.result(), 0);
            break;
        }
        EXPECT_GT(chunk->size(), 0U);
        EXPECT_EQ(chunk.result(), static_cast<int>(chunk->size()));
        EXPECT_TRUE(are_bytes_from(received, chunk->text()));
        const std::uint64_t begin = received;
        received += chunk->size();
        held.push_back({begin, *std::move(chunk)});
        while (held.size() >= most || (!held.empty() && random.one_in(3))) {
            give_one_back();
        }
        if (random.one_in(16)) {
            co_await yield();
        }
    }
    EXPECT_EQ(received, total);
    while (!held.empty()) {
        give_one_back();
    }
}

TEST_P(RecvStream, G1_EveryByteComesOnceAndInOrder) {
    auto main = [](std::uint64_t seed) -> task<> {
        random_source random(seed);
        const unsigned buffers = 1U << random.between(1, 4);
        const std::size_t size = 64 * random.between(1, 40);
        buffer_pool pool(pool_of(buffers, size, random.one_in(2)));
        std::vector<join_handle<void>> all;
        std::deque<socket_pair> sockets;
        // A stream that holds a piece while it waits for the next must leave some for the others.
        const unsigned streams = random.between(1, 3);
        const unsigned most = 1 + (buffers - 1) / streams;
        for (unsigned i = 0; i < streams; ++i) {
            const socket_pair& s = sockets.emplace_back();
            const std::uint64_t total = random.between(1, 300000);
            all.push_back(coil::spawn(send_all(s.b, total, random_source(random()))));
            all.push_back(coil::spawn(
                receive_all(s.a, pool, total, random.between(1, most), random_source(random()))));
        }
        for (auto& each : all) {
            co_await each;
        }
        EXPECT_EQ(pool.available(), pool.size());
        EXPECT_EQ(pool.size(), buffers);
    };
    for (int seed = 1; seed <= coil_test::rounds(20, 1000); ++seed) {
        SCOPED_TRACE(seed);
        run(main(static_cast<std::uint64_t>(seed)));
        if (HasFailure()) {
            return;
        }
    }
}

TEST_P(RecvStream, TheEndIsReportedEachTime) {
    const socket_pair s;
    buffer_pool pool;
    auto main = [](const socket_pair& pair, buffer_pool& p) -> task<> {
        auto incoming = io::recv_multishot(pair.a, p);
        put(pair.b, "last words");
        EXPECT_EQ((co_await incoming.next())->text(), "last words");
        ::shutdown(pair.b, SHUT_WR);
        for (int i = 0; i < 3; ++i) {
            auto end = co_await incoming.next();
            EXPECT_FALSE(end);
            EXPECT_EQ(end.result(), 0);
            EXPECT_FALSE(end.error());
        }
    };
    run(main(s, pool));
    EXPECT_EQ(pool.available(), pool.size());
}

TEST_P(RecvStream, AResetIsAnErrorBehindTheDataAndThenTheEnd) {
    const listener l;
    buffer_pool pool;
    auto main = [](const listener& server, buffer_pool& p) -> task<> {
        coil_test::descriptor client = server.connect();
        const coil_test::descriptor peer{co_await io::accept(server.socket)};
        auto incoming = io::recv_multishot(peer, p);
        put(client, "data");
        EXPECT_EQ((co_await incoming.next())->text(), "data");
        const ::linger hard{1, 0};
        ::setsockopt(client, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        client.reset();
        auto broken = co_await incoming.next();
        EXPECT_FALSE(broken);
        EXPECT_EQ(broken.result(), -ECONNRESET);
        EXPECT_EQ(broken.error(), std::errc::connection_reset);
        EXPECT_EQ((co_await incoming.next()).result(), 0);
    };
    run(main(l, pool));
}

TEST_P(RecvStream, AWrongDescriptorOrFlagIsAnErrorEachTime) {
    const coil_test::pipe_pair pipe;
    buffer_pool pool;
    auto main = [](int fd, int flags, int error, buffer_pool& p) -> task<> {
        auto incoming = io::recv_multishot(fd, p, flags);
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ((co_await incoming.next()).result(), error);
        }
    };
    run(main(-1, 0, -EBADF, pool));
    run(main(pipe.in, 0, -ENOTSOCK, pool));
    EXPECT_EQ(pool.available(), pool.size());
}

TEST_P(RecvStream, G3_CancelledFromElsewhereItReportsThatAndContinues) {
    const socket_pair s;
    buffer_pool pool;
    auto main = [](const socket_pair& pair, buffer_pool& p) -> task<> {
        auto incoming = io::recv_multishot(pair.a, p);
        auto take = [](io::recv_stream& in) -> task<int> {
            co_return (co_await in.next()).result();
        };
        auto taken = coil::spawn(take(incoming));
        co_await some_turns();
        EXPECT_EQ(co_await io::cancel(pair.a.operator int()), 1);
        EXPECT_EQ(co_await taken, -ECANCELED);
        put(pair.b, "still here");
        EXPECT_EQ((co_await incoming.next())->text(), "still here");
    };
    run(main(s, pool));
}

TEST_P(RecvStream, G3_AnExpiredLimitLosesNothing) {
    const socket_pair s;
    buffer_pool pool;
    auto main = [](const socket_pair& pair, buffer_pool& p) -> task<> {
        auto incoming = io::recv_multishot(pair.a, p);
        EXPECT_EQ((co_await timeout(incoming.next(), 1ms)).result(), -ETIMEDOUT);
        EXPECT_EQ((co_await timeout(incoming.next(), 0ms)).result(), -ETIMEDOUT);
        EXPECT_EQ((co_await timeout_at(incoming.next(), std::chrono::steady_clock::now())).result(),
                  -ETIMEDOUT);
        EXPECT_EQ(
            (co_await timeout_at(incoming.next(), std::chrono::system_clock::now() - 1h)).result(),
            -ETIMEDOUT);
        put(pair.b, "one");
        co_await some_turns();
        EXPECT_EQ((co_await timeout(incoming.next(), 0ms))->text(), "one");
        put(pair.b, "two");
        EXPECT_EQ((co_await timeout(incoming.next(), 1h))->text(), "two");
        put(pair.b, "three");
        EXPECT_EQ(
            (co_await timeout_at(incoming.next(), std::chrono::steady_clock::now() + 1h))->text(),
            "three");
        EXPECT_EQ((co_await timeout(incoming.next(), 1ms)).result(), -ETIMEDOUT);
    };
    run(main(s, pool));
    EXPECT_EQ(pool.available(), pool.size());
}

task<int> next_result(io::recv_stream& incoming) {
    auto chunk = co_await incoming.next();
    co_return chunk ? chunk->bytes()[0] == std::byte{'x'} ? 1 : -1 : chunk.result().operator int();
}

TEST_P(RecvStream, G3_AStopEndsTheWaitAndLosesNothing) {
    const socket_pair s;
    buffer_pool pool;
    auto main = [](const socket_pair& pair, buffer_pool& p) -> task<> {
        auto incoming = io::recv_multishot(pair.a, p);
        inplace_stop_source stop;
        auto taken = coil::spawn(with_stop_token(next_result(incoming), stop.get_token()));
        co_await some_turns();
        stop.request_stop();
        EXPECT_EQ(co_await taken, -ECANCELED);
        put(pair.b, "x");
        co_await some_turns();
        // A stopped task receives nothing even if data is available; the next call gets it.
        EXPECT_EQ(co_await with_stop_token(next_result(incoming), stop.get_token()), -ECANCELED);
        EXPECT_EQ(co_await next_result(incoming), 1);
    };
    run(main(s, pool));
}

TEST_P(RecvStream, G3_AStopFromAnotherThreadAroundTheArrival) {
    const socket_pair s;
    buffer_pool pool;
    auto main = [](const socket_pair& pair, buffer_pool& p) -> task<> {
        auto incoming = io::recv_multishot(pair.a, p);
        int taken = 0;
        constexpr int rounds = 200;
        for (int i = 0; i < rounds; ++i) {
            inplace_stop_source stop;
            auto one = coil::spawn(with_stop_token(next_result(incoming), stop.get_token()));
            co_await yield();
            std::thread other([&] { stop.request_stop(); });
            put(pair.b, "x");
            const int result = co_await one;
            other.join();
            EXPECT_TRUE(result == 1 || result == -ECANCELED) << result;
            if (result == -ECANCELED) {
                EXPECT_EQ(co_await next_result(incoming), 1);
            }
            ++taken;
        }
        EXPECT_EQ((co_await timeout(incoming.next(), 0ms)).result(), -ETIMEDOUT);
        EXPECT_EQ(taken, rounds);
    };
    run(main(s, pool));
}

TEST_P(RecvStream, OnADirectDescriptor) {
    const listener l;
    buffer_pool pool;
    auto main = [](const listener& server, buffer_pool& p) -> task<> {
        const coil_test::descriptor client = server.connect();
        const auto peer = co_await io::accept_direct(server.socket);
        if (peer < 0) {
            ADD_FAILURE() << peer;
            co_return;
        }
        {
            auto incoming = io::recv_multishot(peer, p);
            for (const char* text : {"one", "two"}) {
                put(client, text);
                EXPECT_EQ((co_await incoming.next())->text(), text);
            }
        }
        EXPECT_EQ(co_await io::close(peer), 0);
    };
    run(main(l, pool));
}

TEST(RecvStreamOverflow, G6_CompletionsBeyondTheQueueAreNotLost) {
    // Far more completions than the four that the queue holds: the kernel ends multishot requests.
    io_context context(coil_test::with([](auto& o) {
        o.entries = 2;
        o.cq_entries = 4;
    }));
    constexpr std::uint64_t total = 30000;
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(128, 64, false));
        std::deque<socket_pair> sockets;
        std::vector<join_handle<void>> all;
        for (unsigned i = 0; i < 8; ++i) {
            const socket_pair& s = sockets.emplace_back();
            all.push_back(coil::spawn(send_all(s.b, total, random_source(i))));
            all.push_back(coil::spawn(receive_all(s.a, pool, total, 4, random_source(i))));
        }
        for (auto& each : all) {
            co_await each;
        }
        EXPECT_EQ(pool.available(), pool.size());
    };
    coil_test::run_on(context, main());
    EXPECT_GT(context.metrics().overflows, 0U);
}

TEST_P(RecvStream, ALengthBeyondTheBufferIsNotTakenForData) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(2, 128));
        const socket_pair sockets(SOCK_DGRAM);
        auto incoming = io::recv_multishot(sockets.a, pool, MSG_TRUNC);
        const std::string text(1000, 'x');
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(co_await io::send(sockets.b, text), 1000);
            auto chunk = co_await incoming.next();
            EXPECT_EQ(chunk.result(), 1000); // the datagram's length
            EXPECT_EQ((*chunk).text(), text.substr(0, 128));
        }
    };
    run(main());
}

} // namespace
