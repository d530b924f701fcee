// coil::mutex: mutual exclusion in first-come, first-served order; no waiter is lost.

#include "sync/support.hpp"

#include <atomic>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Mutex : public ::testing::Test {};

task<> adds(mutex& m, int& sum, int times) {
    for (int i = 0; i < times; ++i) {
        co_await m.lock();
        const int seen = sum;
        if (i % 4 == 0) {
            co_await yield();
        }
        sum = seen + 1;
        m.unlock();
    }
}

TEST_F(Mutex, ExcludesCoroutinesOfOneContext) {
    mutex m;
    int sum = 0;
    io_context ctx;
    for (int i = 0; i < 100; ++i) {
        ctx.co_spawn(adds(m, sum, 20));
    }
    ctx.run();
    EXPECT_EQ(sum, 2000);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST_F(Mutex, ExcludesCoroutinesOfTwoContexts) {
    mutex m;
    int sum = 0;
    io_context one;
    io_context two;
    for (int i = 0; i < 20; ++i) {
        one.co_spawn(adds(m, sum, 50));
        two.co_spawn(adds(m, sum, 50));
    }
    two.start();
    one.run();
    two.join();
    EXPECT_EQ(sum, 2000);
}

TEST_F(Mutex, TryLock) {
    mutex m;
    EXPECT_TRUE(m.try_lock());
    EXPECT_FALSE(m.try_lock());
    m.unlock();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST_F(Mutex, TheGuardUnlocks) {
    mutex m;
    coil::run([](mutex& it) -> task<> {
        {
            auto guard = co_await it.lock_guard();
            EXPECT_TRUE(guard.owns_lock());
            EXPECT_FALSE(it.try_lock());
            auto other = std::move(guard);
            EXPECT_FALSE(guard.owns_lock()); // NOLINT(bugprone-use-after-move)
            EXPECT_FALSE(it.try_lock());
        }
        EXPECT_TRUE(it.try_lock());
        mutex::guard adopted(it);
        adopted.unlock();
        EXPECT_TRUE(it.try_lock());
        it.unlock();
    }(m));
}

TEST_F(Mutex, G7_FirstComeFirstServed) {
    mutex m;
    std::vector<int> order;
    coil::run([](mutex& it, std::vector<int>& o) -> task<> {
        co_await it.lock();
        std::vector<join_handle<>> all;
        for (int i = 0; i < 10; ++i) {
            all.push_back(spawn([](mutex& mine, std::vector<int>& out, int number) -> task<> {
                co_await mine.lock();
                out.push_back(number);
                mine.unlock();
            }(it, o, i)));
            co_await yield();
        }
        it.unlock();
        EXPECT_FALSE(it.try_lock()); // it was handed over
        for (auto& h : all) {
            co_await h;
        }
    }(m, order));
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

task<> takes(mutex& m, std::vector<char>& order, char name) {
    co_await m.lock();
    order.push_back(name);
    m.unlock();
}

TEST_F(Mutex, G7_WaitersOfOneContextPassTheOldestABoundedNumberOfTimes) {
    mutex m;
    std::vector<char> order; // protected by the mutex
    ASSERT_TRUE(m.try_lock());
    io_context here;
    io_context there;
    there.co_spawn([]() -> task<> { co_await sleep_for(24h); }());
    there.start();
    auto oldest = there.spawn(takes(m, order, 'o'));
    // behind the previous one, which was spawned on the same context
    std::atomic<bool> waits = false;
    there.co_spawn([](std::atomic<bool>& w) -> task<> {
        w = true;
        co_return;
    }(waits));
    while (!waits) {
        std::this_thread::yield();
    }
    here.co_spawn([](mutex& it, std::vector<char>& o) -> task<> {
        std::vector<join_handle<>> all;
        for (int i = 0; i < 50; ++i) {
            all.push_back(spawn(takes(it, o, 'y')));
        }
        co_await yield();
        it.unlock();
        for (auto& h : all) {
            co_await h;
        }
    }(m, order));
    here.run();
    oldest.get();
    there.stop();
    there.join();
    ASSERT_EQ(order.size(), 51U);
    EXPECT_EQ(order[32], 'o');
}

TEST_F(Mutex, G12_AnExceptionUnlocksThroughTheGuard) {
    mutex m;
    EXPECT_THROW(coil::run([](mutex& it) -> task<> {
                     const auto guard = co_await it.lock_guard();
                     throw std::runtime_error("in the middle");
                 }(m)),
                 std::runtime_error);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST_F(Mutex, G10_AMillionLocksThatDoNotWait) {
    mutex m;
    coil::run([](mutex& it) -> task<> {
        for (int i = 0; i < 1'000'000; ++i) {
            co_await it.lock();
            it.unlock();
        }
    }(m));
}

} // namespace
