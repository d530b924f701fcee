// Buffer pools and leases: lifetimes and threads.

#include "io/stream_support.hpp"

#include <atomic>
#include <deque>
#include <fstream>
#include <optional>
#include <thread>

#include <malloc.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::socket_pair;
using io_test::pool_of;
using io_test::put;
using io_test::some_turns;

namespace {

class BufferPool : public io_test::EachFeatureSet {
protected:
    static task<buffer_lease> take(io::recv_stream& incoming) {
        auto chunk = co_await incoming.next();
        EXPECT_TRUE(chunk);
        co_return *std::move(chunk);
    }
    static task<buffer_lease> take_from(const socket_pair& s, buffer_pool& pool,
                                        std::string_view text) {
        put(s.b, text);
        auto incoming = io::recv_multishot(s.a, pool);
        co_return co_await take(incoming);
    }
};
COIL_ON_EACH_FEATURE_SET(BufferPool);

TEST(BufferPoolOptions, SizesAreRounded) {
    const buffer_pool usual;
    EXPECT_EQ(usual.size(), 64U);
    EXPECT_EQ(usual.buffer_size(), 4096U);
    EXPECT_EQ(usual.available(), 64U);
    const buffer_pool odd(5, 65);
    EXPECT_EQ(odd.size(), 8U);
    EXPECT_EQ(odd.buffer_size(), 128U);
    const buffer_pool least(0, 0);
    EXPECT_EQ(least.size(), 1U);
    EXPECT_EQ(least.buffer_size(), 64U);
    const buffer_pool most(1'000'000, 64);
    EXPECT_EQ(most.size(), 32768U);
    buffer_pool_options huge;
    huge.buffers = 32768;
    huge.buffer_size = std::size_t{1} << 30;
    if (!coil_test::sanitized) { // a sanitizer terminates the program
        EXPECT_THROW(buffer_pool{huge}, std::bad_alloc);
    }
}

TEST_P(BufferPool, ALeaseMovesAndReturnsItsBufferOnce) {
    const socket_pair s;
    auto main = [](const socket_pair& pair) -> task<> {
        buffer_pool pool(pool_of(2, 64, false));
        buffer_lease a = co_await take_from(pair, pool, "a");
        EXPECT_TRUE(a);
        EXPECT_EQ(a.text(), "a");
        buffer_lease b(std::move(a));
        EXPECT_FALSE(a); // NOLINT(bugprone-use-after-move): the moved-from state is tested
        EXPECT_TRUE(a.bytes().empty());
        EXPECT_EQ(b.text(), "a");
        buffer_lease& same = b;
        b = std::move(same);
        EXPECT_EQ(b.text(), "a");
        EXPECT_EQ(pool.available(), 1U);
        buffer_lease c = co_await take_from(pair, pool, "c");
        EXPECT_EQ(pool.available(), 0U);
        c = std::move(b); // c's previous buffer is returned now, not with b
        EXPECT_EQ(pool.available(), 1U);
        EXPECT_EQ(c.text(), "a");
        c.data()[0] = std::byte{'z'};
        EXPECT_EQ(c.text(), "z");
        c.reset();
        EXPECT_EQ(pool.available(), 2U);
        EXPECT_TRUE(c.bytes().empty());
        c.reset();
        EXPECT_EQ(pool.available(), 2U);

        buffer_pool other(std::move(pool));
        EXPECT_EQ(other.available(), 2U);
        EXPECT_EQ((co_await take_from(pair, other, "x")).text(), "x");
    };
    run(main(s));
}

TEST_P(BufferPool, ALeaseOutlivesStreamPoolAndContext) {
    buffer_lease last;
    buffer_lease other;
    {
        const socket_pair s;
        io_context context(io_test::options_of(GetParam()));
        buffer_pool pool(pool_of(4, 64));
        last = coil_test::run_on(context, take_from(s, pool, "the last"));
        other = coil_test::run_on(context, take_from(s, pool, "and another"));
    }
    EXPECT_EQ(last.text(), "the last");
    EXPECT_EQ(other.text(), "and another");
    std::thread([lease = std::move(last)] { EXPECT_EQ(lease.text(), "the last"); }).join();
    EXPECT_EQ(other.text(), "and another");
}

TEST_P(BufferPool, APoolIsDestroyedBeforeItsStreams) {
    const socket_pair s;
    auto main = [](const socket_pair& pair) -> task<> {
        auto pool = std::make_unique<buffer_pool>(pool_of(1, 64));
        auto incoming = io::recv_multishot(pair.a, *pool);
        pool.reset();
        put(pair.b, "data");
        EXPECT_EQ((co_await take(incoming)).text(), "data");
        put(pair.b, "more");
        EXPECT_EQ((co_await take(incoming)).text(), "more");
    };
    run(main(s));
}

TEST_P(BufferPool, IsUsedInSeveralRunsAndOnSeveralThreads) {
    const socket_pair s;
    buffer_pool pool(pool_of(4, 64));
    std::vector<buffer_lease> held;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run(take_from(s, pool, "here")).text(), "here");
        std::thread([&] { held.push_back(run(take_from(s, pool, "there"))); }).join();
        EXPECT_EQ(held.back().text(), "there");
    }
    held.clear(); // no context runs: the buffers are returned in the next run
    EXPECT_EQ(run(take_from(s, pool, "here")).text(), "here");
    auto look = [](const buffer_pool& p) -> task<unsigned> { co_return p.available(); };
    EXPECT_EQ(run(look(pool)), 4U);
}

TEST_P(BufferPool, SeveralOnOneContext_OneFailsOnAnother_OneOutlivesItsContext) {
    const socket_pair s;
    buffer_pool first(pool_of(4, 64));
    buffer_pool second(pool_of(4, 128));
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(run(take_from(s, first, "one")).text(), "one");
        EXPECT_EQ(run(take_from(s, second, "two")).text(), "two");
        const buffer_pool shortlived(pool_of(2, 64));
        buffer_pool moved(pool_of(2, 64));
        EXPECT_EQ(run(take_from(s, moved, "three")).text(), "three");
    }
    auto fails = [](const socket_pair& pair, buffer_pool& p) -> task<int> {
        auto incoming = io::recv_multishot(pair.a, p);
        co_return (co_await incoming.next()).result();
    };
    {
        io_context other(io_test::options_of(GetParam()));
        EXPECT_EQ(coil_test::run_on(other, fails(s, first)), -EXDEV);
        buffer_pool third(pool_of(4, 64));
        EXPECT_EQ(coil_test::run_on(other, take_from(s, third, "three")).text(), "three");
        second = std::move(third);
    }
    EXPECT_EQ(run(take_from(s, second, "its context is gone")).text(), "its context is gone");
}

TEST_P(BufferPool, AnIdleStreamHoldsNoBuffer) {
    if (!has_rings()) {
        GTEST_SKIP() << "without buffer rings each waiting stream takes a buffer, as documented";
    }
    constexpr std::size_t count = 1000;
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(4, 64));
        const socket_pair s;
        std::deque<io::recv_stream> streams;
        for (std::size_t i = 0; i < count; ++i) {
            streams.emplace_back(s.a, pool, 0);
            EXPECT_EQ((co_await timeout(streams.back().next(), 0ms)).result(), -ETIMEDOUT);
        }
        co_await some_turns();
        EXPECT_EQ(pool.available(), 4U);
        EXPECT_EQ(pool.size(), 4U);
    };
    run(main());
}

TEST_P(BufferPool, G9_LastLeasesAreReturnedOnOtherThreadsWhileTheContextEnds) {
    for (int i = 0; i < coil_test::rounds(30, 5000); ++i) {
        const socket_pair s;
        std::optional<io_context> context(std::in_place, io_test::options_of(GetParam()));
        auto pool = std::make_unique<buffer_pool>(pool_of(4, 64));
        buffer_lease one = coil_test::run_on(*context, take_from(s, *pool, "one"));
        buffer_lease two = coil_test::run_on(*context, take_from(s, *pool, "two"));
        pool.reset();
        std::atomic<int> ready{0};
        const auto together = [&] {
            ++ready;
            while (ready < 3) {
                std::this_thread::yield();
            }
        };
        std::thread a([&] {
            together();
            one.reset();
        });
        std::thread b([&] {
            together();
            two.reset();
        });
        together();
        for (int spin = 0; spin < i % 50; ++spin) {
            std::this_thread::yield();
        }
        context.reset();
        a.join();
        b.join();
    }
}

TEST_P(BufferPool, G9_LeasesAreReturnedOnOtherThreadsWhileTheContextMoves) {
    const socket_pair s;
    buffer_pool pool(pool_of(8, 64));
    for (int i = 0; i < coil_test::rounds(20, 2000); ++i) {
        buffer_lease one = run(take_from(s, pool, "one"));
        std::thread away([&] { one.reset(); });
        std::thread([&] { EXPECT_EQ(run(take_from(s, pool, "two")).text(), "two"); }).join();
        away.join();
    }
    auto count = [](const socket_pair& pair, buffer_pool& p) -> task<> {
        auto incoming = io::recv_multishot(pair.a, p);
        std::vector<buffer_lease> all;
        for (int i = 0; i < 8; ++i) { // every buffer is available
            put(pair.b, std::string(64, 'x'));
            all.push_back(co_await take(incoming));
        }
    };
    run(count(s, pool));
}

TEST_P(BufferPool, G9_APoolWhoseContextNeverRunsAgainIsFreedFromAnyThread) {
    const socket_pair s;
    for (int i = 0; i < 20; ++i) {
        buffer_lease lease;
        {
            buffer_pool pool(pool_of(4, 64));
            lease = run(take_from(s, pool, "data"));
        }
        std::thread([moved = std::move(lease)]() mutable { moved.reset(); }).join();
    } // checked by LeakSanitizer
}

TEST(BufferPoolMemory, IsFreedWithItsContextOnAnyThread) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer keeps freed memory for a while";
    }
    ::mallopt(M_ARENA_MAX, 1); // a second arena, for a thread, would add 64 MiB
    const auto pages = [] {
        std::size_t count = 0;
        std::ifstream("/proc/self/statm") >> count;
        return count;
    };
    auto use = [](const socket_pair& s, buffer_pool& pool) -> task<> {
        put(s.b, "data");
        auto incoming = io::recv_multishot(s.a, pool);
        EXPECT_TRUE(co_await incoming.next());
    };
    const socket_pair s;
    std::size_t before = 0;
    for (int i = 0; i < 60; ++i) {
        if (i == 20) {
            before = pages();
        }
        io_context context;
        buffer_pool pool(pool_of(1, 64, true, 32768)); // its ring takes half a MiB
        std::thread([&] { coil_test::run_on(context, use(s, pool)); }).join();
    }
    EXPECT_LT(pages(), before + 20 * 128);
}

} // namespace
