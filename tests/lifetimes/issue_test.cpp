// Shutdowns while tasks run on other contexts and executors, nested in any way. Each program runs
// in a separate process; a hang is a failure.

#include "lifetimes/support.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace lifetime_test;

namespace {

// 1. Nested on().

ISOLATED_TEST(Issue, G5_StopWithNestedOn) {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    {
        io_context a;
        io_context b;
        b.start();
        auto x = [&]() -> task<> {
            const counted local(alive);
            co_await on(b, sleeps_for_ever(alive, begun));
        };
        auto r = [&]() -> task<> {
            const counted local(alive);
            co_await on(a, x());
        };
        a.co_spawn(r());
        std::jthread stopper([&] {
            begun.acquire();
            a.stop();
        });
        a.run();
        EXPECT_EQ(alive, 0);
    }
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Issue, G5_StopWithOnThereAndBack) {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    io_context a;
    io_context b;
    b.start();
    auto back = [&]() -> task<> {
        const counted local(alive);
        co_await on(a, sleeps_for_ever(alive, begun)); // on the context that is stopped
    };
    auto r = [&]() -> task<> {
        const counted local(alive);
        co_await on(b, back());
    };
    a.co_spawn(r());
    std::jthread stopper([&] {
        begun.acquire();
        a.stop();
    });
    a.run();
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Issue, G5_StopOfARuntimeWithManyNestedOn) {
    std::atomic<int> alive = 0;
    std::counting_semaphore<16> begun{0};
    {
        runtime rt(2);
        auto sleeps = [&]() -> task<> {
            const counted local(alive);
            begun.release();
            co_await sleep_for(1h);
        };
        auto inner = [&]() -> task<> {
            const counted local(alive);
            co_await on(rt, sleeps());
        };
        auto request = [&]() -> task<> {
            const counted local(alive);
            co_await on(rt, inner());
        };
        for (int i = 0; i < 16; ++i) {
            rt.co_spawn(request());
        }
        std::jthread stopper([&] {
            for (int i = 0; i < 16; ++i) {
                begun.acquire();
            }
            rt.stop();
        });
        rt.run();
    }
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Issue, G5_TwoContextsThatWaitForEachOtherAreStoppedAtOnce) {
    std::atomic<int> alive = 0;
    std::counting_semaphore<2> begun{0};
    io_context a;
    io_context b;
    auto sleeps = [&]() -> task<> {
        const counted local(alive);
        begun.release();
        co_await sleep_for(1h);
    };
    auto back = [&](io_context& to) -> task<> {
        const counted local(alive);
        co_await on(to, sleeps());
    };
    auto there = [&](io_context& to, io_context& from) -> task<> {
        const counted local(alive);
        co_await on(to, back(from));
    };
    a.co_spawn(there(b, a));
    b.co_spawn(there(a, b));
    a.start();
    b.start();
    begun.acquire();
    begun.acquire();
    std::jthread one([&] { a.stop(); });
    b.stop();
    a.join();
    b.join();
    EXPECT_EQ(alive, 0);
}

// 2. Delivery of posted functions and of coroutines to resume.

ISOLATED_TEST(Issue, G1_APostedFunctionDestroysTheCoroutineDeliveredNext) {
    std::atomic<int> alive = 0;
    int called = 0;
    auto steps = [&]() -> task<> {
        const counted local(alive);
        while (true) {
            co_await asyncify([] {});
        }
    };
    auto main = [&]() -> task<> {
        io_context& here = this_context();
        auto children = std::make_unique<scope>();
        any_executor(here).execute([&] { // queued before the first step
            children.reset();
            ++called;
        });
        children->spawn(steps());
        children->spawn(steps());
        while (called == 0) {
            co_await yield();
        }
    };
    coil::run(main());
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(called, 1);
}

ISOLATED_TEST(Issue, G7_NoPostedFunctionIsCalledDuringADestruction) {
    looper_executor looper;
    std::atomic<int> alive = 0;
    std::binary_semaphore there{0};
    std::binary_semaphore go_on{0};
    std::vector<int> order;
    bool destroying = false;
    bool in_the_middle = false;
    auto busy = [&]() -> task<> {
        const counted local(alive);
        there.release();
        go_on.acquire();
        co_return;
    };
    auto away = [&]() -> task<> {
        const counted local(alive);
        co_await on(looper, busy());
    };
    auto main = [&]() -> task<> {
        io_context& here = this_context();
        auto children = std::make_unique<scope>();
        children->spawn(away());
        co_await yield();
        there.acquire();
        std::jthread other([&] { // queues functions while the destructor waits
            for (int i = 0; i < 3; ++i) {
                any_executor(here).execute([&, i] {
                    in_the_middle |= destroying;
                    order.push_back(i);
                });
            }
            std::this_thread::sleep_for(50ms);
            go_on.release();
        });
        destroying = true;
        children.reset();
        destroying = false;
        other.join();
        while (order.size() < 3) {
            co_await yield();
        }
    };
    coil::run(main());
    EXPECT_FALSE(in_the_middle);
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Issue, G1_APostedFunctionDestroysTheWaiterOfAJoinHandle) {
    std::atomic<int> alive = 0;
    int called = 0;
    io_context other;
    other.start();
    auto work = [&]() -> task<> {
        const counted local(alive);
        co_return;
    };
    auto joins = [&]() -> task<> {
        const counted local(alive);
        co_await other.spawn(work());
    };
    auto main = [&]() -> task<> {
        io_context& here = this_context();
        auto children = std::make_unique<scope>();
        children->spawn(joins());
        co_await yield();
        any_executor(here).execute([&] {
            children.reset();
            ++called;
        });
        while (alive == 3) { // then the function and the join are delivered in one batch
            std::this_thread::yield();
        }
        while (called == 0) {
            co_await yield();
        }
    };
    for (int i = 0; i < 200; ++i) {
        called = 0;
        coil::run(main());
    }
    EXPECT_EQ(alive, 0);
}

// 3. A task moves to a context that has ended.

ISOLATED_TEST(Issue, G5_StopOfARuntimeWhileATaskMovesToAContextThatHasEnded) {
    std::atomic<int> alive = 0;
    static std::binary_semaphore ended{0}; // released when the thread of context 1 ends
    static std::binary_semaphore begun{0};
    looper_executor looper;
    {
        runtime rt(2);
        auto watch = []() -> task<> {
            thread_local const at_end tells([] { ended.release(); });
            co_await sleep_for(1h);
        };
        auto moves = [&]() -> task<> {
            const counted local(alive);
            begun.release();
            // Times out if all contexts end together: context 1 then waits for this task.
            static_cast<void>(ended.try_acquire_for(300ms));
            co_await resume_on(rt.context(1));
        };
        auto main = [&]() -> task<> {
            const counted local(alive);
            co_await on(looper, moves());
        };
        rt.context(1).co_spawn(watch());
        rt.context(0).co_spawn(main());
        std::jthread stopper([&] {
            begun.acquire();
            rt.stop();
        });
        rt.run();
    }
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Issue, G5_AStoppedRuntimeWithATaskOnItsWayToAnotherContext) {
    std::atomic<int> alive = 0;
    for (int i = 0; i < 100; ++i) {
        runtime rt(3);
        std::counting_semaphore<> begun{0};
        auto wanders = [&](unsigned to) -> task<> {
            const counted local(alive);
            while (true) {
                co_await resume_on(rt.context(++to % 3));
                begun.release();
            }
        };
        auto follows = [&](unsigned to) -> task<> {
            const counted local(alive);
            co_await on(rt.context(to), wanders(to));
        };
        for (unsigned k = 0; k < 3; ++k) {
            rt.context(k).co_spawn(follows(k + 1 < 3 ? k + 1 : 0));
        }
        std::jthread stopper([&] {
            begun.acquire();
            rt.stop();
        });
        rt.run();
    }
    EXPECT_EQ(alive, 0);
}

// 4. A context is destroyed by a task that it runs.

TEST(Issue, G5_AContextDestroyedByItsOwnTaskIsMisuse) {
    isolated_misuse(
        [] {
            auto* const context = new io_context;
            context->co_spawn([](io_context* c) -> task<> {
                delete c;
                co_return;
            }(context));
            context->run();
        },
        "an io_context is destroyed while it runs");
}

TEST(Issue, G5_ARuntimeDestroyedByItsOwnTaskIsMisuse) {
    isolated_misuse(
        [] {
            auto* const contexts = new runtime(2);
            contexts->co_spawn([](runtime* rt) -> task<> {
                delete rt;
                co_return;
            }(contexts));
            contexts->run();
        },
        "a runtime is destroyed while it runs");
}

} // namespace
