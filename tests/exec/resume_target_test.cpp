// Calls of functions elsewhere, from coroutines on every kind of context and executor.

#include "support/run.hpp"

#include <coil/context/sleep.hpp>
#include <coil/exec/async_task.hpp>
#include <coil/exec/asyncify.hpp>
#include <coil/exec/blocking.hpp>
#include <coil/exec/looper_executor.hpp>
#include <coil/exec/on.hpp>
#include <coil/exec/run_loop.hpp>
#include <coil/exec/schedule.hpp>

#include <chrono>
#include <thread>

namespace {

using namespace coil;

std::thread::id this_thread_id() { return std::this_thread::get_id(); }
task<std::thread::id> current_thread() { co_return this_thread_id(); }

TEST(ResumeTargets, G1_ATaskOfARunLoopComesBackToIt) {
    looper_executor other;
    run_loop loop;
    loop.spawn([](looper_executor& ex) -> task<> {
        const auto target = this_thread_id();
        EXPECT_NE(co_await on(ex, current_thread()), target);
        EXPECT_EQ(this_thread_id(), target);
        EXPECT_NE(co_await asyncify(this_thread_id, ex), target);
        EXPECT_EQ(this_thread_id(), target);
        EXPECT_EQ(co_await asyncify(this_thread_id), target);
        EXPECT_EQ(this_thread_id(), target);
    }(other));
    loop.run();
}

TEST(ResumeTargets, G1_ATaskThatMovedComesBackToWhereItIs) {
    looper_executor other;
    coil::run([](looper_executor& ex) -> task<> {
        co_await resume_on(ex);
        const auto there = this_thread_id();
        EXPECT_NE(co_await blocking(this_thread_id), there);
        EXPECT_EQ(this_thread_id(), there);
        EXPECT_EQ(co_await asyncify(this_thread_id), there);
        EXPECT_EQ(this_thread_id(), there);
        EXPECT_NE(co_await asyncify(this_thread_id, default_blocking_pool()), there);
        EXPECT_EQ(this_thread_id(), there);
    }(other));
}

TEST(ResumeTargets, ATaskOfAContextMovesToARunLoopAndBack) {
    run_loop loop;
    std::thread runner([&] { loop.run(); });
    coil::run([](run_loop& l, std::thread::id there) -> task<> {
        io_context& home = this_context();
        co_await schedule(l);
        EXPECT_EQ(this_thread_id(), there);
        EXPECT_NE(co_await blocking(this_thread_id), there);
        EXPECT_EQ(this_thread_id(), there);
        co_await resume_on(home);
        EXPECT_EQ(&this_context(), &home);
    }(loop, runner.get_id()));
    loop.finish();
    runner.join();
}

async_task<int, looper_executor> comes_back_to_a_looper(executor_arg_t, looper_executor& ex) {
    const auto target = this_thread_id();
    EXPECT_NE(co_await blocking(this_thread_id), target);
    EXPECT_EQ(this_thread_id(), target);
    EXPECT_EQ(co_await asyncify(this_thread_id, ex), target);
    EXPECT_EQ(this_thread_id(), target);
    co_return 3;
}

TEST(ResumeTargets, G1_AnAsyncTaskComesBackToItsExecutor) {
    looper_executor ex;
    EXPECT_EQ(comes_back_to_a_looper(executor_arg, ex).get(), 3);
}

TEST(ResumeTargets, G1_ARunLoopInsideOfAContext) {
    looper_executor other;
    coil::run([](looper_executor& ex) -> task<> {
        run_loop loop;
        loop.spawn([](looper_executor& there) -> task<> {
            const auto target = this_thread_id();
            EXPECT_NE(co_await asyncify(this_thread_id, there), target);
            EXPECT_EQ(this_thread_id(), target);
            EXPECT_NE(co_await on(there, current_thread()), target);
            EXPECT_EQ(this_thread_id(), target);
            EXPECT_EQ(co_await comes_back_to_a_looper(executor_arg, there), 3);
            EXPECT_EQ(this_thread_id(), target);
            EXPECT_EQ(co_await asyncify(this_thread_id), target);
        }(ex));
        loop.run();
        co_await blocking([] {});
    }(other));
}

/// The loop is destroyed by a coroutine of the context that has the loop's remote task.
TEST(ResumeTargets, G5_ARunLoopInsideOfAContextIsDestroyed) {
    for (const bool has_begun : {false, true}) {
        int destroyed = 0;
        io_context ctx;
        ctx.co_spawn([](io_context& c, int& d, bool begins) -> task<> {
            run_loop loop;
            loop.spawn([](io_context& there, int& count) -> task<> {
                const coil_test::on_destruction outer(count);
                co_await on(there, [](int& n) -> task<> {
                    const coil_test::on_destruction inner(n);
                    co_await sleep_for(std::chrono::hours(1));
                }(count));
            }(c, d));
            loop.run_once();
            if (begins) {
                co_await sleep_for(std::chrono::milliseconds(1));
            }
        }(ctx, destroyed, has_begun));
        ctx.run();
        EXPECT_EQ(destroyed, has_begun ? 2 : 1);
    }
}

} // namespace
