// How many of a context's tasks a dump reads in one turn: counted, so that time has no influence.

#include "crowd.hpp"
#include "support.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;
using coil_test::no_limit;
using detail::task_capture;

constexpr std::size_t many = 100'000;
/// A step ends after the task with which it reaches its bound.
constexpr std::size_t most = task_capture::most_per_step + 16;

task<> waits(event& over) { co_await over.wait(); }
task<> waits_below(event& over) { co_await waits(over); }

/// Takes steps that the clock does not end.
std::size_t steps_of(task_capture& capture) {
    std::size_t steps = 1;
    while (!capture.step(1h)) {
        EXPECT_LE(capture.read_in_step(), most);
        ++steps;
    }
    EXPECT_LE(capture.read_in_step(), most);
    capture.leave();
    return steps;
}

TEST(DumpBounds, AStepReadsAPartOfManyTasks) {
    io_context ctx;
    event over;
    coil_test::run_on(ctx, [](io_context& here, event& end) -> task<> {
        for (std::size_t i = 0; i < many; ++i) {
            here.co_spawn(i % 2 == 0 ? waits(end) : waits_below(end));
        }
        co_await yield();
        task_capture capture(here.loop(), no_limit);
        EXPECT_GE(steps_of(capture), many / most);
        const detail::context_snapshot all = capture.take();
        EXPECT_EQ(all.tasks.size(), many + 1);
        EXPECT_EQ(all.result, detail::context_snapshot::how::complete);
        end.set();
    }(ctx, over));
}

TEST(DumpBounds, AStepReadsAPartOfManyChildren) {
    io_context ctx;
    event over;
    coil_test::run_on(ctx, [](io_context& here, event& end) -> task<> {
        scope children;
        for (std::size_t i = 0; i < many; ++i) {
            children.spawn(waits(end));
        }
        co_await yield();
        task_capture capture(here.loop(), no_limit);
        EXPECT_GE(steps_of(capture), many / most);
        const detail::context_snapshot all = capture.take();
        EXPECT_EQ(all.groups.size(), 1U);
        EXPECT_EQ(all.groups.begin() == all.groups.end() ? 0
                                                         : (*all.groups.begin()).children.size(),
                  many);
        end.set();
        co_await children.join();
    }(ctx, over));
}

/// The branches of a task are read in the same step, and count, so that the step ends after them.
TEST(DumpBounds, AStepCountsTheBranchesOfATask) {
    io_context ctx;
    event over;
    coil_test::run_on(ctx, [](io_context& here, event& end) -> task<> {
        constexpr std::size_t wide = many / 10;
        for (std::size_t i = 0; i < wide; ++i) {
            here.co_spawn([](event& one) -> task<> {
                co_await when_all(waits(one), waits_below(one), waits_below(one));
            }(end));
        }
        co_await yield();
        task_capture capture(here.loop(), no_limit);
        EXPECT_GE(steps_of(capture), wide * 5 / most);
        EXPECT_EQ(capture.take().tasks.size(), wide + 1);
        end.set();
    }(ctx, over));
}

/// Another thread takes the dump. A task that runs once in each turn counts the turns.
TEST(DumpBounds, ADumpOfManyTasksTakesManyTurns) {
    io_context ctx;
    event over;
    std::atomic<bool> is_over = false;
    std::size_t turns = 0;
    std::string text;
    for (std::size_t i = 0; i < many; ++i) {
        ctx.co_spawn(waits(over));
    }
    std::thread asker;
    ctx.co_spawn([](io_context& here, event& end, std::thread& asks, std::string& to,
                    std::atomic<bool>& has_answer, std::size_t& count) -> task<> {
        co_await yield();
        asks = std::thread([&] {
            to = here.dump_tasks(no_limit);
            has_answer = true;
        });
        for (; !has_answer; ++count) {
            co_await yield();
        }
        end.set();
    }(ctx, over, asker, text, is_over, turns));
    ctx.run();
    asker.join();
    EXPECT_EQ(count_of(text, "\n  task "), many + 1);
    EXPECT_GE(turns, many * 2 / most);
}

} // namespace
