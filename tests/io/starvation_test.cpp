// A pool without a free buffer: streams wait until one is returned, and none waits forever.

#include "io/stream_support.hpp"
#include "support/fault_environment.hpp"

#include <algorithm>
#include <deque>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::socket_pair;
using io_test::pool_of;
using io_test::put;
using io_test::some_turns;

namespace {

class Starvation : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(Starvation);

task<buffer_lease> take(io::recv_stream& incoming) {
    auto chunk = co_await incoming.next();
    EXPECT_EQ(chunk.result(), 64);
    co_return *std::move(chunk);
}

const std::string full(64, 'x'); // fills a small buffer completely

TEST_P(Starvation, G6_AStreamWaitsUntilALeaseIsGivenBack) {
    const socket_pair s;
    auto main = [](const socket_pair& pair) -> task<> {
        buffer_pool pool(pool_of(1, 64));
        auto incoming = io::recv_multishot(pair.a, pool);
        put(pair.b, full + full);
        buffer_lease first = co_await take(incoming);
        EXPECT_EQ(pool.available(), 0U);
        auto second = coil::spawn(take(incoming));
        co_await sleep_for(2ms);
        EXPECT_FALSE(second.done());
        first.reset();
        EXPECT_EQ((co_await second).text(), full);
        EXPECT_EQ(pool.available(), 1U);
    };
    run(main(s));
}

TEST_P(Starvation, G7_ManyStreamsGetBuffersInTheOrderInWhichTheyWaited) {
    constexpr int streams = 20;
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(1, 64));
        std::deque<socket_pair> sockets(streams + 1);
        std::vector<int> order;
        auto first = io::recv_multishot(sockets.back().a, pool);
        put(sockets.back().b, full);
        buffer_lease held = co_await take(first);
        auto one = [](int fd, buffer_pool& p, int number, std::vector<int>& done) -> task<> {
            auto incoming = io::recv_multishot(fd, p);
            auto chunk = co_await incoming.next();
            EXPECT_EQ(chunk.result(), 64);
            done.push_back(number);
            co_await sleep_for(100us); // holds the buffer for a while
        };
        std::vector<join_handle<void>> all;
        for (int i = 0; i < streams; ++i) {
            const auto& s = sockets[static_cast<std::size_t>(i)];
            put(s.b, full);
            all.push_back(coil::spawn(one(s.a, pool, i, order)));
            co_await some_turns();
        }
        EXPECT_TRUE(order.empty());
        held.reset();
        for (auto& each : all) {
            co_await each;
        }
        EXPECT_EQ(order.size(), static_cast<std::size_t>(streams));
        // Delays may change the order.
        EXPECT_TRUE(coil_test::under_faults() || std::is_sorted(order.begin(), order.end()));
        EXPECT_EQ(pool.available(), 1U);
    };
    run(main());
}

TEST_P(Starvation, G6_AGrantedStreamWithoutDataDoesNotStarveTheOthers) {
    // Another reader takes the data for which the first stream waits.
    if (!has_rings()) {
        GTEST_SKIP() << "without buffer rings each waiting stream takes a buffer, as documented";
    }
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(1, 64));
        const socket_pair a;
        const socket_pair b;
        const socket_pair c;
        auto first = io::recv_multishot(a.a, pool);
        auto second = io::recv_multishot(b.a, pool);
        auto third = io::recv_multishot(c.a, pool);
        put(c.b, full);
        buffer_lease held = co_await take(third);
        put(a.b, full);
        put(b.b, full);
        auto robbed = coil::spawn(take(first));
        co_await some_turns();
        auto other = coil::spawn(take(second));
        co_await some_turns();
        char stolen[64];
        EXPECT_EQ(::recv(a.a, stolen, sizeof stolen, 0), 64);
        held.reset();
        EXPECT_EQ((co_await other).size(), 64U);
        EXPECT_FALSE(robbed.done());
        put(a.b, full);
        EXPECT_EQ((co_await robbed).size(), 64U);
    };
    run(main());
}

TEST_P(Starvation, G6_AnIdleStreamDoesNotBlockOneWithData) {
    if (!has_rings()) {
        GTEST_SKIP() << "without buffer rings each waiting stream takes a buffer, as documented";
    }
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(1, 64));
        const socket_pair a;
        const socket_pair b;
        const socket_pair c;
        auto idle = io::recv_multishot(a.a, pool);
        auto busy = io::recv_multishot(b.a, pool);
        auto third = io::recv_multishot(c.a, pool);
        put(c.b, full);
        buffer_lease held = co_await take(third);
        auto never = coil::spawn(take(idle)); // begins to wait while there is no buffer
        co_await some_turns();
        put(b.b, full);
        auto taken = coil::spawn(take(busy));
        co_await some_turns();
        held.reset();
        EXPECT_EQ((co_await taken).size(), 64U);
        put(a.b, full);
        EXPECT_EQ((co_await never).size(), 64U);
    };
    run(main());
}

TEST_P(Starvation, G3_AStarvingWaitCanBeLimitedStoppedAndDestroyed) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(1, 64));
        const socket_pair a;
        const socket_pair b;
        auto first = io::recv_multishot(a.a, pool);
        auto second = io::recv_multishot(b.a, pool);
        put(a.b, full + full);
        put(b.b, full);
        buffer_lease held = co_await take(first);
        EXPECT_EQ((co_await timeout(second.next(), 1ms)).result(), -ETIMEDOUT);
        inplace_stop_source stop;
        auto waits = [](io::recv_stream& incoming) -> task<int> {
            co_return (co_await incoming.next()).result();
        };
        auto stopped = coil::spawn(with_stop_token(waits(second), stop.get_token()));
        co_await some_turns();
        stop.request_stop();
        EXPECT_EQ(co_await stopped, -ECANCELED);
        {
            const socket_pair c;
            put(c.b, full);
            auto third = io::recv_multishot(c.a, pool);
            EXPECT_EQ((co_await timeout(third.next(), 1ms)).result(), -ETIMEDOUT);
        } // `third` is destroyed while it is in the pool's queue
        // `second` is not awaited now: its place in the queue must not cost `first` the buffer.
        auto again = coil::spawn(take(first));
        co_await some_turns();
        held.reset();
        EXPECT_EQ((co_await again).size(), 64U);
        // The lease has been returned, so there is a buffer for `second`, too.
        EXPECT_EQ((co_await take(second)).size(), 64U);
        EXPECT_EQ(pool.available(), 1U);
    };
    run(main());
}

TEST_P(Starvation, G9_AnotherThreadReturnsLeasesWhileManyStreamsWait) {
    constexpr std::size_t pieces = 200;
    auto main = [](std::uint64_t seed) -> task<> {
        coil_test::random_source random(seed);
        buffer_pool pool(pool_of(2, 64, random.one_in(2)));
        std::deque<socket_pair> sockets(5);
        std::mutex guard;
        std::vector<buffer_lease> to_give_back;
        bool over = false;
        std::thread other([&] {
            for (bool last = false; !last;) {
                std::vector<buffer_lease> mine;
                {
                    const std::lock_guard lock(guard);
                    mine.swap(to_give_back);
                    last = over;
                }
                mine.clear();
                std::this_thread::yield();
            }
        });
        auto one = [&](const socket_pair& s) -> task<> {
            auto incoming = io::recv_multishot(s.a, pool);
            for (std::size_t received = 0; received < pieces * 64;) {
                auto chunk = co_await incoming.next();
                EXPECT_TRUE(chunk);
                received += chunk->size();
                const std::lock_guard lock(guard);
                to_give_back.push_back(*std::move(chunk));
            }
        };
        auto feeder = [](const socket_pair& s) -> task<> {
            for (std::size_t i = 0; i < pieces; ++i) {
                EXPECT_EQ(co_await io::send(s.b, full), 64);
            }
        };
        std::vector<join_handle<void>> all;
        for (const socket_pair& s : sockets) {
            all.push_back(coil::spawn(feeder(s)));
            all.push_back(coil::spawn(one(s)));
        }
        for (auto& each : all) {
            co_await each;
        }
        {
            const std::lock_guard lock(guard);
            over = true;
        }
        other.join();
    };
    for (int seed = 1; seed <= coil_test::rounds(5, 100); ++seed) {
        run(main(static_cast<std::uint64_t>(seed)));
    }
}

TEST_P(Starvation, ThePoolGrowsInsteadUpToItsLimit) {
    const socket_pair s;
    auto main = [](const socket_pair& pair) -> task<> {
        buffer_pool pool(pool_of(2, 64, true, 8));
        EXPECT_EQ(pool.size(), 2U);
        auto incoming = io::recv_multishot(pair.a, pool);
        std::vector<buffer_lease> held;
        for (unsigned i = 0; i < 8; ++i) {
            put(pair.b, full);
            held.push_back(co_await take(incoming));
        }
        EXPECT_EQ(pool.size(), 8U);
        EXPECT_EQ(pool.available(), 0U);
        put(pair.b, full);
        EXPECT_EQ((co_await timeout(incoming.next(), 1ms)).result(), -ETIMEDOUT);
        EXPECT_EQ(pool.size(), 8U);
        held.clear();
        EXPECT_EQ((co_await incoming.next()).result(), 64);
        EXPECT_EQ(pool.available(), 8U);
    };
    run(main(s));
}

TEST_P(Starvation, G6_AStreamThatIsNotReadLeavesBuffersForOthers) {
    auto main = []() -> task<> {
        constexpr int pieces = 100;
        buffer_pool pool(pool_of(16, 64));
        const socket_pair a;
        const socket_pair b;
        auto unread = io::recv_multishot(a.a, pool);
        auto read = io::recv_multishot(b.a, pool);
        EXPECT_EQ((co_await timeout(unread.next(), 0ms)).result(), -ETIMEDOUT);
        for (int i = 0; i < pieces; ++i) {
            put(a.b, full);
            co_await some_turns(2);
        }
        put(b.b, full);
        EXPECT_EQ((co_await timeout(read.next(), 10s)).result(), 64);
        for (std::size_t received = 0; received < pieces * 64;) {
            auto chunk = co_await timeout(unread.next(), 10s);
            EXPECT_TRUE(chunk);
            if (!chunk) {
                break;
            }
            received += chunk->size();
        }
        EXPECT_EQ(pool.available(), pool.size());
    };
    run(main());
}

task<> keep(io::recv_stream& incoming, buffer_lease& held, event& has_one) {
    held = co_await take(incoming);
    has_one.set();
}

/// Any of the streams may get the buffer.
TEST_P(Starvation, G5_StopWhileStreamsStarve) {
    auto main = [](io_context& context, buffer_pool& pool, std::deque<socket_pair>& sockets,
                   buffer_lease& held) -> task<> {
        std::deque<io::recv_stream> streams;
        std::vector<join_handle<void>> all;
        event has_one;
        for (auto& s : sockets) {
            put(s.b, full);
            streams.emplace_back(s.a, pool, 0);
            all.push_back(coil::spawn(keep(streams.back(), held, has_one)));
        }
        co_await has_one.wait();
        co_await some_turns();
        context.stop();
        co_await sleep_for(1h);
    };
    for (int i = 0; i < 3; ++i) {
        std::deque<socket_pair> sockets(10);
        buffer_pool pool(pool_of(1, 64));
        buffer_lease held;
        context_.co_spawn(main(context_, pool, sockets, held));
        context_.run();
        EXPECT_EQ(held.text(), full);
    }
}

} // namespace
