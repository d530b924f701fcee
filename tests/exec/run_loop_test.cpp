#include "support/run.hpp"

#include <coil/exec/asyncify.hpp>
#include <coil/exec/blocking.hpp>
#include <coil/exec/run_loop.hpp>
#include <coil/exec/schedule.hpp>

#include <atomic>
#include <coroutine>
#include <exception>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coil;
using namespace std::chrono_literals;
using said = std::vector<std::string>;

/// A minimal coroutine, which is resumed and destroyed from outside.
struct round_robin_coroutine {
    struct promise_type {
        round_robin_coroutine get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
};

round_robin_coroutine run_loop_counts(said& log, std::string name, int to) {
    for (int i = 0; i < to; ++i) {
        log.push_back(name + std::to_string(i));
        co_await std::suspend_always();
    }
}

round_robin_coroutine run_loop_holds(int& destroyed, int turns) {
    const coil_test::on_destruction local(destroyed);
    for (int i = 0; i < turns; ++i) {
        co_await std::suspend_always();
    }
}

/// A minimal scheduler: each coroutine has one turn per round, in arrival order, on the thread that
/// runs the loop.
TEST(RunLoop, G7_RoundRobin) {
    said log;
    run_loop loop;
    EXPECT_TRUE(loop.push(run_loop_counts(log, "a", 3).handle));
    EXPECT_TRUE(loop.push(run_loop_counts(log, "b", 1).handle));
    EXPECT_TRUE(loop.push(run_loop_counts(log, "c", 2).handle));
    EXPECT_TRUE(log.empty());
    loop.run();
    EXPECT_EQ(log, (said{"a0", "b0", "c0", "a1", "c1", "a2"}));
    EXPECT_EQ(loop.run_once(), 0U);
    loop.run(); // returns, because only this thread has submitted work
    EXPECT_EQ(log.size(), 6U);
}

TEST(RunLoop, RunOnceRunsOneRound) {
    said log;
    run_loop loop;
    EXPECT_EQ(loop.run_once(), 0U);
    loop.push(run_loop_counts(log, "a", 2).handle);
    loop.push(run_loop_counts(log, "b", 1).handle);
    EXPECT_EQ(loop.run_once(), 2U);
    EXPECT_EQ(log, (said{"a0", "b0"}));
    loop.push(run_loop_counts(log, "c", 1).handle);
    EXPECT_EQ(loop.run_once(), 3U); // b ends
    EXPECT_EQ(log, (said{"a0", "b0", "a1", "c0"}));
    EXPECT_EQ(loop.run_once(), 2U);
    EXPECT_EQ(loop.run_once(), 0U);
}

TEST(RunLoop, OnTheThreadThatRunsIt) {
    run_loop loop;
    std::thread::id pushed;
    std::thread::id spawned;
    std::thread::id executed;
    loop.push([](std::thread::id& id) -> round_robin_coroutine {
        id = std::this_thread::get_id();
        co_return;
    }(pushed)
                                             .handle);
    loop.spawn([](std::thread::id& id) -> task<> {
        id = std::this_thread::get_id();
        co_return;
    }(spawned));
    loop.execute([&] { executed = std::this_thread::get_id(); });
    loop.finish(); // this thread submits no more
    std::thread runner([&] { loop.run(); });
    const auto id = runner.get_id();
    runner.join();
    EXPECT_EQ(pushed, id);
    EXPECT_EQ(spawned, id);
    EXPECT_EQ(executed, id);
}

TEST(RunLoop, G5_OwnsItsFrames) {
    int ended = 0;
    int never = 0;
    {
        run_loop loop;
        loop.push(run_loop_holds(ended, 1).handle);
        loop.push(run_loop_holds(never, 1000).handle);
        loop.run_once();
        EXPECT_EQ(ended, 0);
        loop.run_once();
        EXPECT_EQ(ended, 1); // destroyed as soon as it has ended
        EXPECT_EQ(never, 0);
    }
    EXPECT_EQ(never, 1);
}

TEST(RunLoop, AFinishedCoroutineIsDestroyed) {
    int destroyed = 0;
    const auto coroutine = run_loop_holds(destroyed, 0).handle;
    coroutine.resume();
    EXPECT_EQ(destroyed, 1); // its local; ASan checks the frame
    run_loop loop;
    EXPECT_TRUE(loop.push(coroutine));
    loop.run();
}

TEST(RunLoop, G1_ACoroutinePushedTwiceIsQueuedOnce) {
    said log;
    run_loop loop;
    const auto coroutine = run_loop_counts(log, "a", 2).handle;
    EXPECT_TRUE(loop.push(coroutine));
    EXPECT_FALSE(loop.push(coroutine));
    EXPECT_FALSE(loop.push(nullptr));
    loop.run_once();
    EXPECT_FALSE(loop.push(coroutine));
    EXPECT_EQ(loop.run_once(), 1U);
    EXPECT_EQ(log, (said{"a0", "a1"}));
    loop.run();
}

/// The awaiter of a minimal scheduler: a suspending coroutine pushes itself.
TEST(RunLoop, G1_ACoroutineMayPushItself) {
    struct back_to {
        run_loop& loop;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> me) const { loop.push(me); }
        void await_resume() const noexcept {}
    };
    const auto counts = [](run_loop& l, said& log, std::string name) -> round_robin_coroutine {
        for (int i = 0; i < 3; ++i) {
            log.push_back(name + std::to_string(i));
            co_await back_to{l};
        }
    };
    said log;
    run_loop loop;
    counts(loop, log, "a").handle.resume(); // runs to its first await, which pushes it to the loop
    loop.push(counts(loop, log, "b").handle);
    loop.run();
    EXPECT_EQ(log, (said{"a0", "a1", "b0", "a2", "b1", "b2"}));
}

TEST(RunLoop, TasksYield) {
    said log;
    run_loop loop;
    const auto talks = [](run_loop& l, said& s, std::string name) -> task<> {
        for (int i = 0; i < 2; ++i) {
            s.push_back(name + std::to_string(i));
            // A task that this one awaits may yield as well.
            co_await [](run_loop& same) -> task<> { co_await same.yield(); }(l);
        }
    };
    loop.spawn(talks(loop, log, "a"));
    loop.push([](run_loop& l, said& s) -> round_robin_coroutine {
        for (int i = 0; i < 2; ++i) {
            s.push_back("p" + std::to_string(i));
            co_await l.yield(); // gives the others their turn, as any suspension does
        }
    }(loop, log)
                                              .handle);
    loop.spawn(talks(loop, log, "b"));
    loop.run();
    EXPECT_EQ(log, (said{"a0", "p0", "b0", "a1", "p1", "b1"}));
}

/// A task that waits for something else is not resumed meanwhile, and then resumes on the loop.
TEST(RunLoop, G1_WaitingTasksAreNotResumed) {
    run_loop loop;
    std::binary_semaphore entered(0);
    std::binary_semaphore opened(0);
    bool done = false;
    loop.spawn([](std::binary_semaphore& in, std::binary_semaphore& open, bool& d) -> task<> {
        const auto home = std::this_thread::get_id();
        const auto there = co_await blocking([&] {
            in.release();
            open.acquire();
            return std::this_thread::get_id();
        });
        EXPECT_NE(there, home);
        EXPECT_EQ(std::this_thread::get_id(), home);
        EXPECT_EQ(co_await asyncify([] { return std::this_thread::get_id(); }), home);
        blocking_pool& pool = default_blocking_pool();
        EXPECT_NE(co_await asyncify([] { return std::this_thread::get_id(); }, pool), home);
        EXPECT_EQ(std::this_thread::get_id(), home);
        d = true;
    }(entered, opened, done));
    EXPECT_EQ(loop.run_once(), 1U);
    entered.acquire();
    EXPECT_EQ(loop.run_once(), 0U);
    EXPECT_EQ(loop.run_once(), 0U);
    opened.release();
    loop.run(); // sleeps until the task is back, and returns when it has ended
    EXPECT_TRUE(done);
}

TEST(RunLoop, IsAnExecutor) {
    static_assert(executor<run_loop>);
    run_loop loop;
    said log;
    loop.execute([&] { log.push_back("f"); });
    loop.spawn([](run_loop& l, said& s) -> task<> {
        s.push_back("before");
        EXPECT_EQ(co_await asyncify(
                      [&] {
                          s.push_back("g");
                          return 1;
                      },
                      l),
                  1);
        s.push_back("after");
    }(loop, log));
    loop.execute([&, n = std::make_unique<int>(1)] { log.push_back("h"); });
    loop.run();
    EXPECT_EQ(log, (said{"f", "before", "h", "g", "after"}));
}

TEST(RunLoop, G12_ExceptionsAreReported) {
    testing::internal::CaptureStderr();
    said log;
    {
        run_loop loop;
        loop.push([]() -> round_robin_coroutine {
            co_await std::suspend_always();
            throw std::runtime_error("of a coroutine");
        }()
                              .handle);
        loop.spawn([]() -> task<> {
            throw std::runtime_error("of a task");
            co_return;
        }());
        loop.execute([] { throw std::runtime_error("of a function"); });
        loop.push(run_loop_counts(log, "a", 3).handle);
        loop.run();
    }
    EXPECT_EQ(log.size(), 3U); // the others continue
    const std::string text = testing::internal::GetCapturedStderr();
    for (const char* origin : {"of a coroutine", "of a task", "of a function"}) {
        EXPECT_NE(text.find(origin), std::string::npos) << text;
    }
}

TEST(RunLoop, StopLeavesTheRestForTheNextRun) {
    said log;
    run_loop loop;
    loop.push(run_loop_counts(log, "a", 2).handle);
    loop.execute([&] { loop.stop(); });
    loop.push(run_loop_counts(log, "b", 2).handle);
    loop.run();
    EXPECT_EQ(log, (said{"a0"}));
    loop.run(); // b did not have its turn in that round
    EXPECT_EQ(log, (said{"a0", "b0", "a1", "b1"}));

    loop.stop(); // applies to the next run()
    loop.push(run_loop_counts(log, "c", 1).handle);
    loop.run();
    EXPECT_EQ(log.size(), 4U);
    loop.run();
    EXPECT_EQ(log.size(), 5U);
}

TEST(RunLoop, StopEndsALoopWhoseWorkNeverEnds) {
    int destroyed = 0;
    {
        run_loop loop;
        loop.push([](int& d) -> round_robin_coroutine {
            const coil_test::on_destruction local(d);
            for (;;) {
                co_await std::suspend_always();
            }
        }(destroyed)
                                    .handle);
        loop.run_once();
        std::thread stopper([&] { loop.stop(); });
        loop.run();
        stopper.join();
    }
    EXPECT_EQ(destroyed, 1);
}

TEST(RunLoop, WaitsForFinishIfNothingWasSubmitted) {
    run_loop loop;
    std::atomic<int> calls = 0;
    std::atomic<bool> returned = false;
    std::thread runner([&] {
        loop.run();
        returned = true;
    });
    for (int i = 0; i < 3; ++i) {
        std::binary_semaphore done(0);
        loop.execute([&] {
            ++calls;
            done.release();
        });
        done.acquire();
        std::this_thread::sleep_for(1ms); // run() has nothing to do and does not return
        EXPECT_FALSE(returned);
    }
    loop.execute([&] { ++calls; });
    loop.finish(); // drains
    runner.join();
    EXPECT_EQ(calls, 4);
    loop.execute([&] { ++calls; });
    loop.run(); // finish() is permanent
    EXPECT_EQ(calls, 5);
    loop.run();
}

TEST(RunLoop, WaitsForFinishIfAnotherThreadHasSubmitted) {
    said log;
    run_loop loop;
    loop.push(run_loop_counts(log, "a", 1).handle);
    std::thread([&] { loop.push(run_loop_counts(log, "b", 1).handle); }).join();
    std::thread finisher([&] {
        coil_test::wait_until_asleep(::getpid()); // in run(), with nothing left
        loop.execute([&] { log.push_back("more"); });
        loop.finish();
    });
    loop.run();
    finisher.join();
    EXPECT_EQ(log, (said{"a0", "b0", "more"}));
}

TEST(RunLoop, FinishBeforeRun) {
    said log;
    run_loop loop;
    loop.finish();
    loop.run();
    loop.push(run_loop_counts(log, "a", 2).handle);
    loop.finish();
    loop.run();
    EXPECT_EQ(log.size(), 2U);
}

TEST(RunLoop, OneThreadAtATime) {
    run_loop loop;
    std::string what;
    loop.execute([&] {
        try {
            loop.run();
        } catch (const std::logic_error& e) {
            what = e.what();
        }
        EXPECT_THROW(loop.run_once(), std::logic_error);
    });
    loop.run();
    EXPECT_EQ(what, "coil: run_loop::run() called while the loop is already running");
}

TEST(RunLoop, G9_AnyThreadMaySubmit) {
    run_loop loop;
    std::atomic<int> ended = 0;
    const int each = coil_test::rounds(coil_test::sanitized ? 50 : 500, 20'000);
    std::vector<std::thread> producers;
    for (int p = 0; p < 4; ++p) {
        producers.emplace_back([&] {
            for (int i = 0; i < each; ++i) {
                loop.push([](std::atomic<int>& e) -> round_robin_coroutine {
                    co_await std::suspend_always();
                    ++e;
                }(ended)
                                                         .handle);
                loop.spawn([](run_loop& l, std::atomic<int>& e) -> task<> {
                    co_await l.yield();
                    ++e;
                }(loop, ended));
                loop.execute([&] { ++ended; });
            }
        });
    }
    std::thread finisher([&] {
        for (std::thread& producer : producers) {
            producer.join();
        }
        loop.finish();
    });
    loop.run();
    finisher.join();
    EXPECT_EQ(ended, 3 * 4 * each);
}

TEST(RunLoop, G5_TheDestructorDestroysEverything) {
    int destroyed = 0;
    {
        run_loop loop;
        loop.push(run_loop_holds(destroyed, 9).handle);
        const auto waits = [](run_loop& l, int& d) -> task<> {
            const coil_test::on_destruction local(d);
            co_await l.yield();
            co_await [](run_loop& same) -> task<> {
                co_await same.yield();
                co_await asyncify([] { ADD_FAILURE(); });
            }(l);
        };
        for (int i = 0; i < 3; ++i) {
            loop.spawn(waits(loop, destroyed));
            loop.run_once();
        }
        loop.spawn([](int& d, coil_test::on_destruction) -> task<> {
            (void)d;
            co_return; // never starts
        }(destroyed, coil_test::on_destruction(destroyed)));
        loop.execute([d = coil_test::on_destruction(destroyed)] { ADD_FAILURE(); });
    }
    EXPECT_EQ(destroyed, 6);
}

TEST(RunLoop, G5_TheDestructorWaitsForRunningCalls) {
    int destroyed = 0;
    std::binary_semaphore entered(0);
    std::binary_semaphore opened(0);
    std::atomic<bool> ended = false;
    std::thread opener;
    {
        blocking_pool pool(1);
        run_loop loop;
        for (int i = 0; i < 2; ++i) { // one starts, one is queued
            loop.spawn([](blocking_pool& p, std::binary_semaphore& in, std::binary_semaphore& out,
                          std::atomic<bool>& end, int& d) -> task<> {
                const coil_test::on_destruction local(d);
                co_await blocking(p, [&] {
                    in.release();
                    out.acquire();
                    end = true;
                });
                ADD_FAILURE();
            }(pool, entered, opened, ended, destroyed));
        }
        loop.run_once();
        entered.acquire();
        opener = std::thread([&] { opened.release(2); });
    }
    opener.join();
    EXPECT_TRUE(ended);
    EXPECT_EQ(destroyed, 2);
}

/// The result is available, and the coroutine is in the loop's queue or about to be pushed to it.
TEST(RunLoop, G5_DestroyedWhenTheResultIsThere) {
    for (int i = 0; i < coil_test::rounds(50, 2000); ++i) {
        int destroyed = 0;
        int after = 0;
        std::atomic<bool> ended = false;
        {
            run_loop loop;
            loop.spawn([](std::atomic<bool>& end, int& d, int& a) -> task<> {
                const coil_test::on_destruction local(d);
                co_await blocking([&] { end = true; });
                ++a; // only if the result arrived before the coroutine had suspended
            }(ended, destroyed, after));
            loop.run_once();
            while (!ended) {
                std::this_thread::yield();
            }
        }
        EXPECT_EQ(destroyed, 1);
        EXPECT_LE(after, 1);
    }
}

TEST(RunLoop, DestructorsMaySubmitMoreWork) {
    int calls = 0;
    int destroyed = 0;
    struct gives_more {
        run_loop& loop;
        int& calls;
        int& destroyed;
        ~gives_more() {
            loop.execute(
                [this_calls = &calls, d = coil_test::on_destruction(destroyed)] { ++*this_calls; });
        }
    };
    {
        run_loop loop;
        loop.push([](run_loop& l, int& c, int& d) -> round_robin_coroutine {
            const gives_more local{l, c, d};
            co_await std::suspend_always();
        }(loop, calls, destroyed)
                                                         .handle);
        loop.run_once();
    }
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(destroyed, 1);
}

/// A loop inside of a context's coroutine: after an await, tasks of the loop resume on the loop,
/// and tasks of the context on the context.
TEST(RunLoop, InsideOfAContext) {
    io_context ctx;
    std::thread::id blocked;
    ctx.co_spawn([](std::thread::id& id) -> task<> {
        run_loop loop;
        int order = 0;
        loop.spawn([](std::thread::id& there, int& o) -> task<> {
            there = co_await blocking([] { return std::this_thread::get_id(); });
            EXPECT_EQ(o++, 0);
        }(id, order));
        loop.run();
        EXPECT_EQ(order++, 1);
        co_await blocking([] {});
        EXPECT_EQ(order, 2);
    }(blocked));
    ctx.run();
    EXPECT_NE(blocked, std::this_thread::get_id());

    run_loop outer;
    outer.execute([] {
        coil::run([]() -> task<> {
            co_await blocking([] {}); // back to the context
            co_await sleep_for(1us);
        }());
    });
    outer.run();
}

/// A context destroys a loop to which one of its tasks has moved: the context adopts the task.
TEST(RunLoop, G1_G5_AContextThatDestroysItAdoptsItsOwnTasks) {
    for (const bool shutdown : {false, true}) {
        int destroyed = 0;
        bool went_on = false;
        auto loop = std::make_unique<run_loop>();
        io_context ctx;
        ctx.co_spawn([](run_loop& l, int& d, bool& on, bool ends) -> task<> {
            const coil_test::on_destruction local(d);
            co_await resume_on(l);
            co_await l.yield();
            co_await sleep_for(ends ? 1h : 1ms);
            on = true;
        }(*loop, destroyed, went_on, shutdown));
        ctx.co_spawn([](io_context& c, std::unique_ptr<run_loop>& l, bool ends) -> task<> {
            std::thread([&] { l->run_once(); }).join(); // until it yields
            l.reset();
            if (ends) {
                co_await sleep_for(1ms);
                c.stop();
            }
        }(ctx, loop, shutdown));
        ctx.run();
        EXPECT_EQ(went_on, !shutdown);
        EXPECT_EQ(destroyed, 1);
    }
}

/// Both the loop and the awaited operation would resume such a coroutine.
TEST(RunLoopDeathTest, G1_APushedCoroutineCannotAwaitWhatResumesIt) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto run_one = [](round_robin_coroutine coroutine) {
        run_loop loop;
        loop.push(coroutine.handle);
        loop.run();
    };
    const char* const message = "coil: a coroutine that was pushed to a run_loop awaits";
    EXPECT_DEATH(run_one([]() -> round_robin_coroutine {
                     co_await blocking([] { std::this_thread::sleep_for(10ms); });
                 }()),
                 message);
    EXPECT_DEATH(run_one([]() -> round_robin_coroutine { co_await asyncify([] {}); }()), message);
}

} // namespace
