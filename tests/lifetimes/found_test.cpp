// Defects found by the random programs (programs_test.cpp), each reduced to a minimal program.

#include "lifetimes/support.hpp"

#include <atomic>
#include <latch>
#include <optional>
#include <semaphore>
#include <system_error>
#include <thread>

using namespace lifetime_test;

namespace {

// A task awaits on() of its own context, whose child awaits on() of a busy looper. The shutdown
// must wait for the looper before it destroys the outer task.

ISOLATED_TEST(Found, G5_AStopWhileAChildOnTheSameContextAwaitsABusyLooper) {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    std::binary_semaphore may_return{0};
    looper_executor looper;
    {
        io_context a;
        auto busy = [&]() -> task<> {
            const counted local(alive);
            begun.release();
            may_return.acquire();
            co_return;
        };
        auto x = [&]() -> task<> {
            const counted local(alive);
            co_await on(looper, busy());
        };
        auto r = [&]() -> task<> {
            const counted local(alive);
            co_await on(a, x());
        };
        a.co_spawn(r());
        std::jthread stopper([&] {
            begun.acquire();
            a.stop();
            std::this_thread::sleep_for(50ms); // the shutdown has to wait for the looper meanwhile
            may_return.release();
        });
        a.run();
    }
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Found, G5_ThreeContextsInARowAreStoppedAtOnce) {
    for (int i = 0; i < 50; ++i) {
        std::atomic<int> alive = 0;
        std::binary_semaphore begun{0};
        io_context a;
        io_context b;
        io_context c;
        auto x = [&]() -> task<> {
            const counted local(alive);
            co_await on(c, sleeps_for_ever(alive, begun));
        };
        auto r = [&]() -> task<> {
            const counted local(alive);
            co_await on(b, x());
        };
        a.co_spawn(r());
        a.start();
        b.start();
        c.start();
        begun.acquire();
        std::jthread one([&] { b.stop(); });
        std::jthread another([&] { a.stop(); });
        c.stop();
        a.join();
        b.join();
        c.join();
        EXPECT_EQ(alive, 0);
    }
}

// The case "a task moves to a context that has ended" of issue_test.cpp, without a common runtime.

ISOLATED_TEST(Found, G5_ATaskMovesToAStoppedContextWhileItsCallersShutdownWaits) {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    std::binary_semaphore may_return{0};
    looper_executor looper;
    {
        io_context a;
        io_context b;
        auto moves = [&]() -> task<> {
            const counted local(alive);
            begun.release();
            may_return.acquire();
            co_await resume_on(b);
        };
        auto r = [&]() -> task<> {
            const counted local(alive);
            co_await on(looper, moves());
        };
        a.co_spawn(r());
        a.start();
        b.start();
        begun.acquire();
        b.stop();
        b.join(); // b still exists, but does not run
        a.stop();
        may_return.release();
        a.join();
    }
    EXPECT_EQ(alive, 0);
}

// A frame is destroyed while its context runs, and its remote child awaits a task on that context.

ISOLATED_TEST(Found, G5_AScopeIsLeftWhoseRemoteChildHasARemoteChildHere) {
    std::atomic<int> alive = 0;
    io_context b;
    b.start();
    auto back = [&](io_context& a, std::binary_semaphore& begun) -> task<> {
        const counted local(alive);
        co_await on(a, sleeps_for_ever(alive, begun));
    };
    auto main = [&]() -> task<> {
        std::binary_semaphore begun{0};
        {
            scope children;
            children.spawn(on(b, back(this_context(), begun)));
            while (!begun.try_acquire()) {
                co_await yield();
            }
        }
        EXPECT_EQ(alive, 0);
    };
    coil::run(main());
    EXPECT_EQ(alive, 0);
}

/// The chain of awaiters from the task on this context up to the scope that is destroyed contains a
/// scope of the other context. This thread must not read that scope.
ISOLATED_TEST(Found, G5_AScopeIsLeftAndATaskOfARemoteScopeHasMovedHere) {
    std::atomic<int> alive = 0;
    io_context b;
    b.start();
    auto moves = [&](io_context& a, std::binary_semaphore& begun) -> task<> {
        const counted local(alive);
        co_await resume_on(a);
        co_await sleeps_for_ever(alive, begun);
    };
    auto joins = [&](io_context& a, std::binary_semaphore& begun) -> task<> {
        const counted local(alive);
        scope children;
        children.spawn(on(b, moves(a, begun)));
        co_await children.join();
    };
    auto main = [&]() -> task<> {
        std::binary_semaphore begun{0};
        {
            scope children;
            children.spawn(on(b, joins(this_context(), begun)));
            while (!begun.try_acquire()) {
                co_await yield();
            }
        }
        EXPECT_EQ(alive, 0);
    };
    coil::run(main());
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Found, G5_AScopeIsLeftWhoseRemoteChildCleansUpHere) {
    std::atomic<int> alive = 0;
    int cleaned = 0;
    io_context b;
    b.start();
    auto here = [&]() -> task<> {
        const counted local(alive);
        ++cleaned;
        co_await yield();
        ++cleaned;
    };
    auto away = [&](io_context& a, std::binary_semaphore& begun) -> task<> {
        const counted local(alive);
        begun.release();
        co_await sleep_for(1h); // until it is asked to stop
        co_await shield(on(a, here()));
    };
    auto main = [&]() -> task<> {
        std::binary_semaphore begun{0};
        {
            scope children;
            children.spawn(on(b, away(this_context(), begun)));
            while (!begun.try_acquire()) {
                co_await yield();
            }
        }
        EXPECT_EQ(alive, 0);
        EXPECT_TRUE(cleaned == 0 || cleaned == 2) << cleaned;
    };
    coil::run(main());
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Found, G5_AScopeIsLeftWhoseChildJoinsATaskThatNeedsThisContext) {
    std::atomic<int> alive = 0;
    std::atomic<int> ticking = 0; // of the detached task: its handle is destroyed
    io_context b;
    b.start();
    auto ticks = [&]() -> task<> {
        const counted local(ticking);
        co_await sleep_for(1ms);
    };
    auto away = [&](io_context& a, std::binary_semaphore& begun) -> task<> {
        const counted local(alive);
        auto handle = a.spawn(ticks());
        begun.release();
        co_await shield(handle);
    };
    auto main = [&]() -> task<> {
        std::binary_semaphore begun{0};
        {
            scope children;
            children.spawn(on(b, away(this_context(), begun)));
            while (!begun.try_acquire()) {
                co_await yield();
            }
        }
        EXPECT_EQ(alive, 0);
    };
    coil::run(main());
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(ticking, 0);
}

// A task moves to a context that never runs, and is dropped when its own context no longer exists.

template <class Move>
void moves_to_a_context_that_does_not_run(Move move) {
    std::atomic<int> alive = 0;
    std::optional<join_handle<>> handle;
    {
        io_context to;
        io_context from; // destroyed before `to`
        auto work = [&]() -> task<> {
            const counted local(alive);
            co_await move(to);
        };
        handle.emplace(from.spawn(work()));
        from.run();
    }
    EXPECT_EQ(alive, 0) << "the task was lost";
    EXPECT_TRUE(handle->done());
}

ISOLATED_TEST(Found, G5_ResumeOnAContextThatDoesNotRun) {
    moves_to_a_context_that_does_not_run([](io_context& to) { return resume_on(to); });
}

ISOLATED_TEST(Found, G5_ScheduleOnAContextThatDoesNotRun) {
    moves_to_a_context_that_does_not_run([](io_context& to) { return schedule(to); });
}

// A task of a run_loop awaits an async_task that has ended: its resumption is in the loop's queue
// when the loop is destroyed.

async_task<int, looper_executor> ends_there(executor_arg_t, looper_executor&) { co_return 1; }

ISOLATED_TEST(Found, G5_ARunLoopIsDestroyedWhileItsTaskIsAboutToResume) {
    std::atomic<int> alive = 0;
    looper_executor looper;
    {
        run_loop loop;
        auto waits = [&]() -> task<> {
            const counted local(alive);
            co_await ends_there(executor_arg, looper);
        };
        loop.spawn(waits());
        loop.run_once();
        looper.shutdown();
        looper.join(); // the async_task has ended
    }
    EXPECT_EQ(alive, 0);
}

// A run_loop is destroyed while an async_task of it is about to resume after a blocking call.

task<> calls(blocking_pool& pool, std::binary_semaphore& may_return, std::atomic<int>& alive) {
    const counted local(alive);
    co_await blocking(pool, [&may_return] { may_return.acquire(); });
}

async_task<void, any_executor> calls_there(executor_arg_t, any_executor, blocking_pool& pool,
                                           std::binary_semaphore& may_return,
                                           std::atomic<int>& alive) {
    const counted local(alive);
    co_await calls(pool, may_return, alive);
}

ISOLATED_TEST(Found, G5_ARunLoopIsDestroyedWhileAnAsyncTaskReturnsToIt) {
    std::atomic<int> alive = 0;
    std::binary_semaphore may_return{0};
    {
        run_loop loop;
        {
            blocking_pool pool(1);
            static_cast<void>(
                calls_there(executor_arg, any_executor(loop), pool, may_return, alive));
            loop.run_once();
            EXPECT_EQ(alive, 2);
            may_return.release();
        } // the call has ended, and the resumption is in the loop's queue
    }
    EXPECT_EQ(alive, 0);
}

// A task of a thread pool is not destroyed with its awaiter, only asked to stop. Here it waits,
// through a task of the context b, for a task of the context a, whose thread is blocked in that
// destructor. No request to destroy a task reaches b.

ISOLATED_TEST(Found, G5_AScopeIsLeftWhileAPoolsTaskWaitsForATaskOfTheSameContext) {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    thread_pool pool(1);
    {
        io_context a;
        io_context b;
        auto on_b = [&]() -> task<> {
            const counted local(alive);
            co_await on(a, sleeps_for_ever(alive, begun));
        };
        auto on_pool = [&]() -> task<> {
            const counted local(alive);
            co_await on(b, on_b());
        };
        auto child = [&]() -> task<> {
            const counted local(alive);
            co_await on(pool, on_pool());
        };
        auto leaves = [&]() -> task<> {
            scope children;
            children.spawn(child());
            while (!begun.try_acquire()) {
                co_await yield();
            }
        };
        a.co_spawn(leaves());
        b.start();
        a.run();
        b.stop();
        b.join();
    }
    EXPECT_EQ(alive, 0);
}

// A child joins a scope that is a local variable of another task. Destroying the child must not
// request the destruction of tasks that the children of that scope wait for. Such a request would
// outlive the destructor to which it refers, and a destructor on another thread would read it.

ISOLATED_TEST(Found, G5_AScopeIsLeftWhoseChildJoinsTheScopeOfAnotherTask) {
    std::atomic<int> alive = 0;
    std::binary_semaphore busy_begun{0};
    std::latch leaving(2);
    coil::event begun;
    coil::event may_end;
    bool was_destroyed = false;
    io_context a;
    io_context b;
    io_context third;
    const auto elsewhere = [&]() -> task<> {
        const counted local(alive);
        begun.set();
        co_await may_end.wait();
    };
    const auto waits_for_elsewhere = [&]() -> task<> {
        try {
            co_await on(b, elsewhere());
        } catch (const std::system_error&) {
            was_destroyed = true;
        }
    };
    const auto joins = [&](scope& other) -> task<> { co_await other.join(); };
    const auto sleeps = [&]() -> task<> { co_await sleep_for(1h); };
    const auto leaves = [&](scope& other) -> task<> {
        scope children;
        children.spawn(joins(other));
        children.spawn(sleeps());
        co_await sleep_for(5ms);
        leaving.arrive_and_wait();
        std::this_thread::sleep_for(20ms); // the thread of b is in a destructor
    };
    const auto owns = [&]() -> task<> {
        scope children;
        children.spawn(waits_for_elsewhere());
        co_await begun.wait();
        co_await spawn(leaves(children));
        co_await sleep_for(100ms);
        may_end.set();
        co_await children.join();
    };
    const auto busy = [&]() -> task<> {
        busy_begun.release();
        co_await yield();
        std::this_thread::sleep_for(200ms);
        co_await sleep_for(1h);
    };
    const auto waits_for_busy = [&]() -> task<> { co_await on(third, busy()); };
    const auto waits_in_a_destructor = [&]() -> task<> {
        {
            scope children;
            children.spawn(waits_for_busy());
            co_await begun.wait();
            while (!busy_begun.try_acquire()) {
                co_await yield();
            }
            leaving.arrive_and_wait();
        }
        co_await may_end.wait();
    };
    a.co_spawn(owns());
    b.co_spawn(waits_in_a_destructor());
    third.start();
    std::jthread thread([&] { b.run(); });
    a.run();
    thread.join();
    third.stop();
    third.join();
    EXPECT_FALSE(was_destroyed);
    EXPECT_EQ(alive, 0);
}

/// The same, caused by a request to destroy a remote child that waits for the group of another
/// task. The child ends earlier than the task for which a child of the group waits.
ISOLATED_TEST(Found, G5_ARemoteChildThatWaitsForTheGroupOfAnotherTaskIsDestroyed) {
    std::binary_semaphore busy_begun{0};
    std::latch leaving(2);
    coil::event far_begun;
    coil::event may_wait;
    coil::event over;
    io_context a;
    io_context b;
    io_context third;
    io_context fourth;
    task_group<void>* shared = nullptr;
    const auto far = [&]() -> task<> {
        far_begun.set();
        co_await over.wait();
    };
    const auto waits_for_far = [&]() -> task<> { co_await on(third, far()); };
    const auto sleeps = [&]() -> task<> { co_await sleep_for(1h); };
    const auto owns = [&]() -> task<> {
        task_group<void> group;
        shared = &group;
        group.spawn(waits_for_far());
        group.spawn(sleeps());
        co_await far_begun.wait();
        may_wait.set();
        co_await sleep_for(300ms);
        over.set();
        while (group.size() > 0) {
            co_await yield();
        }
    };
    const auto waits_for_the_group = [&]() -> task<> {
        co_await may_wait.wait();
        co_await shared->next(); // waits for the end of the one that sleeps
    };
    const auto waits_for_that = [&]() -> task<> { co_await on(b, waits_for_the_group()); };
    const auto leaves = [&]() -> task<> {
        {
            scope children;
            children.spawn(waits_for_that());
            co_await may_wait.wait();
            co_await sleep_for(20ms);
            leaving.arrive_and_wait();
            std::this_thread::sleep_for(20ms); // the thread of `third` is in a destructor
        }
        co_await over.wait();
    };
    const auto busy = [&]() -> task<> {
        busy_begun.release();
        co_await yield();
        std::this_thread::sleep_for(200ms);
        co_await sleep_for(1h);
    };
    const auto waits_for_busy = [&]() -> task<> { co_await on(fourth, busy()); };
    const auto waits_in_a_destructor = [&]() -> task<> {
        {
            scope children;
            children.spawn(waits_for_busy());
            co_await may_wait.wait();
            while (!busy_begun.try_acquire()) {
                co_await yield();
            }
            leaving.arrive_and_wait();
        }
        co_await over.wait();
    };
    a.co_spawn(leaves());
    b.co_spawn(owns());
    third.co_spawn(waits_in_a_destructor());
    fourth.start();
    std::jthread on_b([&] { b.run(); });
    std::jthread on_third([&] { third.run(); });
    a.run();
    on_b.join();
    on_third.join();
    fourth.stop();
    fourth.join();
}

} // namespace
