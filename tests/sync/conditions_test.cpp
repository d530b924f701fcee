// Events, latches, wait groups, barriers, condition variables.

#include "sync/support.hpp"

#include <atomic>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Conditions : public ::testing::Test {};

TEST_F(Conditions, AnEventResumesAllWaitersInOrder) {
    event e;
    std::vector<int> order;
    coil::run([](event& it, std::vector<int>& o) -> task<> {
        std::vector<join_handle<>> all;
        for (int i = 0; i < 5; ++i) {
            all.push_back(spawn([](event& mine, std::vector<int>& out, int n) -> task<> {
                co_await mine.wait();
                out.push_back(n);
            }(it, o, i)));
        }
        co_await yield();
        EXPECT_TRUE(o.empty());
        it.set();
        it.reset(); // coroutines that were waiting still pass
        for (auto& h : all) {
            co_await h;
        }
        EXPECT_FALSE(it.is_set());
        it.set();
        it.set();
        co_await it.wait();
        co_await it.wait();
    }(e, order));
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(Conditions, AnEventMayBeSetInitially) {
    event e(true);
    coil::run([](event& it) -> task<> { co_await it.wait(); }(e));
    auto_reset_event once(true);
    coil::run([](auto_reset_event& it) -> task<> { co_await it.wait(); }(once));
    EXPECT_FALSE(once.is_set());
}

TEST_F(Conditions, AnAutoResetEventReleasesOneWaiter) {
    auto_reset_event e;
    e.set();
    e.set();
    EXPECT_TRUE(e.try_wait());
    EXPECT_FALSE(e.try_wait());
    int passed = 0;
    coil::run([](auto_reset_event& it, int& n) -> task<> {
        std::vector<join_handle<>> all;
        for (int i = 0; i < 3; ++i) {
            all.push_back(spawn([](auto_reset_event& mine, int& count) -> task<> {
                co_await mine.wait();
                ++count;
            }(it, n)));
        }
        for (int i = 1; i <= 3; ++i) {
            co_await yield();
            it.set();
            co_await yield();
            co_await yield();
            EXPECT_EQ(n, i);
        }
        for (auto& h : all) {
            co_await h;
        }
    }(e, passed));
    EXPECT_FALSE(e.is_set());
}

TEST_F(Conditions, AnEventWithAValue) {
    event_value<std::string> e;
    std::string seen;
    io_context other;
    other.co_spawn([](event_value<std::string>& it) -> task<> {
        EXPECT_TRUE(it.set("what was waited for"));
        EXPECT_FALSE(it.set("something else"));
        co_return;
    }(e));
    other.start();
    coil::run([](event_value<std::string>& it, std::string& s) -> task<> {
        const std::string& value = co_await it.wait();
        s = value;
    }(e, seen));
    other.join();
    EXPECT_EQ(seen, "what was waited for");
    EXPECT_EQ(e.get(), seen);
}

TEST_F(Conditions, G1_AHundredThousandOnOneEvent) {
    event e;
    int passed = 0;
    const int many = coil_test::sanitized ? 10'000 : 100'000;
    io_context ctx;
    for (int i = 0; i < many; ++i) {
        ctx.co_spawn([](event& it, int& n) -> task<> {
            co_await it.wait();
            ++n;
        }(e, passed));
    }
    ctx.co_spawn([](event& it) -> task<> {
        it.set();
        co_return;
    }(e));
    ctx.run();
    EXPECT_EQ(passed, many);
}

TEST_F(Conditions, ALatchOpensAtZero) {
    latch l(3);
    int passed = 0;
    io_context one;
    io_context two;
    for (io_context* ctx : {&one, &two}) {
        ctx->co_spawn([](latch& it, int& n) -> task<> {
            EXPECT_FALSE(it.try_wait());
            co_await it.arrive_and_wait();
            static_cast<void>(n);
        }(l, passed));
    }
    one.co_spawn([](latch& it) -> task<> {
        co_await sleep_for(5ms);
        it.count_down();
        co_await it.wait();
    }(l));
    two.start();
    one.run();
    two.join();
    EXPECT_TRUE(l.try_wait());
    latch none(0);
    coil::run([](latch& it) -> task<> { co_await it.wait(); }(none));
}

TEST_F(Conditions, G1_AWaitGroupIsDestroyedByTheWaiterItResumes) {
    io_context other;
    other.co_spawn([]() -> task<> { co_await sleep_for(24h); }());
    other.start();
    const int times = coil_test::rounds(300, 20'000);
    coil::run([](io_context& there, int n) -> task<> {
        for (int i = 0; i < n; ++i) {
            wait_group g;
            int sum[3] = {};
            for (int& s : sum) {
                g.add();
                there.co_spawn([](wait_group& mine, int& out) -> task<> {
                    out = 1;
                    mine.done();
                    co_return;
                }(g, s));
            }
            co_await g.wait();
            EXPECT_EQ(sum[0] + sum[1] + sum[2], 3);
        }
    }(other, times));
    other.stop();
    other.join();
}

TEST_F(Conditions, AnEmptyWaitGroupDoesNotWait) {
    wait_group g;
    coil::run([](wait_group& it) -> task<> {
        co_await it.wait();
        it.add(2);
        it.done();
        it.done();
        co_await it.wait();
    }(g));
}

TEST_F(Conditions, ABarrierSynchronizesPhases) {
    int phases = 0;
    auto counts = [&phases]() noexcept { ++phases; };
    constexpr int workers = 4;
    constexpr int steps = 200;
    barrier step(workers, counts);
    std::vector<std::atomic<int>> at(workers);
    auto works = [](auto& b, std::vector<std::atomic<int>>& all, int me) -> task<> {
        for (int i = 0; i < steps; ++i) {
            all[static_cast<std::size_t>(me)] = i;
            co_await b.arrive_and_wait();
            for (const auto& other : all) {
                EXPECT_GE(other.load(), i);
            }
            co_await b.arrive_and_wait();
        }
    };
    io_context one;
    io_context two;
    for (int w = 0; w < workers; ++w) {
        (w % 2 == 0 ? one : two).co_spawn(works(step, at, w));
    }
    two.start();
    one.run();
    two.join();
    EXPECT_EQ(phases, 2 * steps);
}

TEST_F(Conditions, ABarrierWithTokensAndDrops) {
    barrier b(2);
    coil::run([](barrier<>& it) -> task<> {
        auto mine = it.arrive();
        auto other = spawn([](barrier<>& theirs) -> task<> {
            co_await theirs.arrive_and_wait();
            theirs.arrive_and_drop();
        }(it));
        co_await it.wait(std::move(mine));
        co_await it.arrive_and_wait();
        co_await other;
        co_await it.arrive_and_wait(); // the only participant now
        co_await it.arrive_and_wait();
    }(b));
}

/// A participant ends a phase and arrives in the next one immediately, without waiting.
TEST_F(Conditions, G1_ABarrierCountsAnArrivalThatFollowsTheEndOfAPhase) {
    const long rounds = coil_test::sanitized ? 2000 : coil_test::rounds(30'000, 100'000);
    barrier b(2);
    std::atomic<long> arrived{0};
    std::atomic<long> passed{0};
    io_context other;
    other.co_spawn(
        [](barrier<>& it, std::atomic<long>& in, std::atomic<long>& out, long n) -> task<> {
            for (long k = 1; k <= 2 * n; ++k) {
                auto token = it.arrive();
                in = k;
                co_await it.wait(std::move(token));
                out = k;
            }
        }(b, arrived, passed, rounds));
    other.start();
    bool hangs = false;
    for (long k = 1; k <= rounds && !hangs; ++k) {
        while (arrived < 2 * k - 1) {
            std::this_thread::yield();
        }
        static_cast<void>(b.arrive()); // the last of this phase
        static_cast<void>(b.arrive()); // the first or the last of the next
        const auto limit = std::chrono::steady_clock::now() + 30s;
        while (passed < 2 * k && !hangs) {
            std::this_thread::yield();
            hangs = std::chrono::steady_clock::now() > limit;
        }
    }
    EXPECT_FALSE(hangs) << "after " << passed << " phases";
    if (hangs) {
        other.stop();
    }
    other.join();
}

struct shared_queue {
    mutex m;
    condition_variable changed;
    std::vector<int> items;
};

TEST_F(Conditions, AConditionVariableAcrossContexts) {
    shared_queue q;
    const int count = coil_test::rounds(2000, 100'000);
    auto puts = [](shared_queue& it, int n) -> task<> {
        for (int i = 0; i < n; ++i) {
            {
                auto guard = co_await it.m.lock_guard();
                it.items.push_back(i);
            }
            it.changed.notify_one();
        }
    };
    auto takes = [](shared_queue& it, int n) -> task<> {
        for (int i = 0; i < n; ++i) {
            auto guard = co_await it.m.lock_guard();
            co_await it.changed.wait(it.m, [&] { return !it.items.empty(); });
            EXPECT_FALSE(it.m.try_lock());
            it.items.pop_back();
        }
    };
    io_context one;
    io_context two;
    one.co_spawn(takes(q, count));
    two.co_spawn(takes(q, count));
    one.co_spawn(puts(q, count));
    two.co_spawn(puts(q, count));
    two.start();
    one.run();
    two.join();
    EXPECT_TRUE(q.items.empty());
    EXPECT_TRUE(q.m.try_lock());
    q.m.unlock();
}

TEST_F(Conditions, NotifyAll) {
    shared_queue q;
    coil::run([](shared_queue& it) -> task<> {
        int passed = 0;
        std::vector<join_handle<>> all;
        for (int i = 0; i < 5; ++i) {
            all.push_back(spawn([](shared_queue& mine, int& n) -> task<> {
                co_await mine.m.lock();
                co_await mine.changed.wait(mine.m);
                ++n;
                mine.m.unlock();
            }(it, passed)));
        }
        co_await yield();
        it.changed.notify_one();
        for (int i = 0; i < 5; ++i) {
            co_await yield();
        }
        EXPECT_EQ(passed, 1);
        it.changed.notify_all();
        for (auto& h : all) {
            co_await h;
        }
        EXPECT_EQ(passed, 5);
    }(q));
}

TEST_F(Conditions, G12_APredicateThatThrows) {
    shared_queue q;
    EXPECT_THROW(coil::run([](shared_queue& it) -> task<> {
                     auto guard = co_await it.m.lock_guard();
                     co_await it.changed.wait(it.m,
                                              []() -> bool { throw std::runtime_error("p"); });
                 }(q)),
                 std::runtime_error);
    EXPECT_TRUE(q.m.try_lock());
    q.m.unlock();
}

TEST_F(Conditions, G5_TheNotificationOfADestroyedWaiterPassesToTheNext) {
    for (const bool mutex_is_free : {true, false}) {
        shared_queue q;
        coil::run([](shared_queue& it, bool free) -> task<> {
            bool first_went_on = false;
            bool second_went_on = false;
            coil_test::manual first = [](shared_queue& mine, bool& went_on) -> coil_test::manual {
                auto guard = co_await mine.m.lock_guard();
                co_await mine.changed.wait(mine.m);
                went_on = true;
            }(it, first_went_on);
            first.start();
            auto second = spawn([](shared_queue& mine, bool& went_on) -> task<> {
                auto guard = co_await mine.m.lock_guard();
                co_await mine.changed.wait(mine.m);
                went_on = true;
            }(it, second_went_on));
            co_await yield();
            EXPECT_TRUE(it.m.try_lock()); // both wait for the condition
            if (free) {
                it.m.unlock();
            }
            it.changed.notify_one(); // the first waiter now has the mutex, or waits for it
            first.destroy();
            if (!free) {
                it.m.unlock();
            }
            for (int i = 0; i < 5; ++i) {
                co_await yield();
            }
            EXPECT_TRUE(second_went_on);
            EXPECT_FALSE(first_went_on);
            it.changed.notify_all();
            co_await second;
        }(q, mutex_is_free));
        EXPECT_TRUE(q.m.try_lock());
        q.m.unlock();
    }
}

/// For ThreadSanitizer: if a guard leaves its unlock to another guard, the accesses of both are
/// still ordered.
TEST_F(Conditions, G5_DestroyedWithGuardsWhileOthersLock) {
    shared_queue q;
    std::atomic<bool> end{false};
    io_context users[2];
    for (io_context& user : users) {
        user.co_spawn([](shared_queue& it, std::atomic<bool>& stop) -> task<> {
            while (!stop) {
                {
                    auto guard = co_await it.m.lock_guard();
                    it.items.assign(1, 1);
                }
                co_await yield();
            }
        }(q, end));
        user.start();
    }
    for (int round = coil_test::rounds(100, 3000); round > 0; --round) {
        constexpr int many = 20;
        io_context sleepers;
        std::atomic<int> waiting{0};
        for (int i = 0; i < many; ++i) {
            sleepers.co_spawn([](shared_queue& it, std::atomic<int>& count) -> task<> {
                auto guard = co_await it.m.lock_guard();
                it.items.assign(1, 2);
                ++count;
                co_await it.changed.wait(it.m);
            }(q, waiting));
        }
        sleepers.start();
        while (waiting < many) {
            std::this_thread::yield();
        }
        sleepers.stop();
        sleepers.join();
    }
    end = true;
    for (io_context& user : users) {
        user.join();
    }
    EXPECT_TRUE(q.m.try_lock());
    q.m.unlock();
}

TEST_F(Conditions, G5_DestroyedWhileItWaitsWithAGuard) {
    shared_queue q;
    for (const bool with_guard : {true, false}) {
        io_context ctx;
        ctx.co_spawn([](shared_queue& it, bool guarded) -> task<> {
            if (guarded) {
                auto guard = co_await it.m.lock_guard();
                co_await it.changed.wait(it.m);
            } else {
                co_await it.m.lock();
                co_await it.changed.wait(it.m);
                it.m.unlock();
            }
        }(q, with_guard));
        ctx.co_spawn([](shared_queue& it, io_context& c) -> task<> {
            // locked by another coroutine when the waiter is destroyed
            EXPECT_TRUE(it.m.try_lock());
            c.stop();
            co_return;
        }(q, ctx));
        ctx.run();
        EXPECT_FALSE(q.m.try_lock());
        {
            mutex::guard adopted(q.m);
        }
        EXPECT_TRUE(q.m.try_lock());
        q.m.unlock();
    }
}

} // namespace
