// Misuse terminates the program with a message in every build type. Constant initialization allows
// use before main().

#include "sync/support.hpp"

#include <string>

using namespace coil;
using namespace std::chrono_literals;

namespace {

constinit mutex static_mutex;
constinit shared_mutex static_shared_mutex;
constinit counting_semaphore<> static_semaphore{2};
constinit latch static_latch{1};
constinit condition_variable static_condition;
constinit event static_event;
constinit auto_reset_event static_auto_event{true};
constinit event_value<int> static_value;
constinit oneshot<int> static_oneshot;
constinit wait_group static_group{1};

TEST(SyncStatics, AreConstantInitialized) {
    coil::run([]() -> task<> {
        co_spawn([]() -> task<> {
            static_latch.count_down();
            static_event.set();
            EXPECT_TRUE(static_value.set(3));
            EXPECT_TRUE(static_oneshot.send(4));
            static_group.done();
            const auto guard = co_await static_mutex.lock_guard();
            static_condition.notify_all();
        }());
        co_await static_mutex.lock();
        co_await static_condition.wait(static_mutex);
        static_mutex.unlock();
        co_await static_shared_mutex.lock();
        static_shared_mutex.unlock();
        co_await static_semaphore.acquire();
        co_await static_semaphore.acquire();
        EXPECT_FALSE(static_semaphore.try_acquire());
        co_await static_latch.wait();
        co_await static_event.wait();
        co_await static_auto_event.wait();
        EXPECT_EQ(co_await static_value.wait(), 3);
        EXPECT_EQ(co_await static_oneshot.recv(), 4);
        co_await static_group.wait();
    }());
}

TEST(SyncMisuse, UnlockingAnUnlockedMutex) {
    EXPECT_DEATH(
        {
            mutex m;
            m.unlock();
        },
        "unlock\\(\\) of a mutex that is not locked");
    EXPECT_DEATH(
        {
            shared_mutex m;
            m.unlock();
        },
        "unlock\\(\\) of a shared_mutex that is not locked exclusively");
    EXPECT_DEATH(
        {
            shared_mutex m;
            static_cast<void>(m.try_lock_shared());
            m.unlock();
        },
        "unlock\\(\\) of a shared_mutex that is not locked exclusively");
    EXPECT_DEATH(
        {
            shared_mutex m;
            static_cast<void>(m.try_lock());
            m.unlock_shared();
        },
        "unlock_shared\\(\\) of a shared_mutex that is not locked shared");
}

TEST(SyncMisuse, ReleasingASemaphoreBeyondItsMaximum) {
    EXPECT_DEATH(
        {
            binary_semaphore s{1};
            s.release();
        },
        "beyond max");
    EXPECT_DEATH(
        {
            counting_semaphore<4> s{2};
            s.release(3);
        },
        "beyond max");
    EXPECT_DEATH(
        {
            counting_semaphore<4> s{2};
            s.release(-1);
        },
        "of a negative number");
    EXPECT_DEATH(counting_semaphore<4>{5}, "a semaphore must be constructed with 0 to max");
    counting_semaphore<4> s{2};
    s.release(2);
    s.release(0);
    EXPECT_TRUE(s.try_acquire());
}

TEST(SyncMisuse, CountsBelowZero) {
    EXPECT_DEATH(
        {
            latch l{1};
            l.count_down(2);
        },
        "latch::count_down\\(\\) was called with more than the remaining count");
    EXPECT_DEATH(latch{-1}, "a latch must be constructed with 0 or more");
    EXPECT_DEATH(barrier<>{-1}, "a barrier must be constructed with 0 or more");
    EXPECT_DEATH(
        {
            wait_group g{2};
            g.add(-3);
        },
        "more often than add\\(\\) allows");
    EXPECT_DEATH(wait_group{-1}, "more often than add\\(\\) allows");
}

TEST(SyncMisuse, ABroadcastOfCapacityZero) {
    EXPECT_DEATH(broadcast<int>{0}, "a broadcast keeps at least one element");
}

TEST(SyncMisuse, AwaitingASendTwice) {
    EXPECT_DEATH(coil::run([]() -> task<> {
                     channel<std::string> ch{4};
                     auto sends = ch.send("once");
                     co_await sends;
                     co_await sends;
                 }()),
                 "the result of channel::send\\(\\) was awaited twice");
}

TEST(SyncWaitGroup, G1_ANegativeAddWakesLikeDone) {
    for (const int at_once : {1, 2, 5}) {
        wait_group g{5};
        bool woken = false;
        coil::run([](wait_group& it, int n, bool& done) -> task<> {
            co_spawn([](wait_group& to, bool& out) -> task<> {
                co_await to.wait();
                out = true;
            }(it, done));
            co_await yield();
            co_await yield();
            for (int left = 5; left > 0;) {
                EXPECT_FALSE(done);
                const int now = left < n ? left : n;
                it.add(-now);
                left -= now;
                co_await yield();
                co_await yield();
            }
            EXPECT_TRUE(done);
        }(g, at_once, woken));
        EXPECT_TRUE(woken);
    }
}

TEST(SyncMisuse, MoreArrivalsAtABarrierThanItExpects) {
    EXPECT_DEATH(
        {
            barrier b{1};
            static_cast<void>(b.arrive(2));
        },
        "more participants have arrived at a barrier than it expects");
    EXPECT_DEATH(
        {
            barrier b{2};
            static_cast<void>(b.arrive(0));
        },
        "arrive\\(n\\) takes 1 to as many as are still missing");
    EXPECT_DEATH(
        {
            barrier b{1};
            b.arrive_and_drop();
            b.arrive_and_drop();
        },
        "a participant that has dropped out does not arrive again");
}

/// Each thread calls add() with its share; the last one wakes the waiter.
TEST(SyncWaitGroup, G1_NegativeAddsByManyThreads) {
    for (int round = 0; round < coil_test::rounds(200, 10'000); ++round) {
        wait_group g;
        std::vector<std::thread> threads;
        for (int i = 1; i <= 3; ++i) {
            g.add(i);
        }
        for (int i = 1; i <= 3; ++i) {
            threads.emplace_back([&g, i] { g.add(-i); });
        }
        coil::run([](wait_group& it) -> task<> { co_await it.wait(); }(g));
        for (auto& t : threads) {
            t.join();
        }
    }
}

} // namespace
