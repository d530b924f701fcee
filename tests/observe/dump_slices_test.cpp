// A snapshot is taken in slices, between which tasks end and others start.

#include "crowd.hpp"
#include "support.hpp"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;
using coil_test::crowd;
using coil_test::names_of;
using coil_test::no_limit;
using coil_test::takes_a_step;
using coil_test::waits_for;
using detail::context_snapshot;
using detail::task_capture;
using detail::task_record;

/// Every task that lives throughout is recorded exactly once; other tasks at most once.
void expect_each_once(const context_snapshot& snapshot, std::size_t steady,
                      std::size_t victims = 0) {
    std::map<std::string, int> names = names_of(snapshot);
    for (std::size_t i = 0; i < steady; ++i) {
        EXPECT_EQ(names["steady " + std::to_string(i)], 1) << i;
    }
    for (std::size_t i = 0; i < victims; ++i) {
        EXPECT_LE(names["victim " + std::to_string(i)], 1) << i;
    }
    EXPECT_EQ(names["late"], 0);
}

TEST(DumpSlices, TasksEndAndStartBetweenSlices) {
    static constexpr std::size_t count = 150;
    for (unsigned seed = 0; seed < static_cast<unsigned>(coil_test::rounds(40, 2000)); ++seed) {
        io_context ctx;
        crowd steady;
        crowd victims;
        coil_test::run_on(
            ctx, [](io_context& here, crowd& some, crowd& others, unsigned number) -> task<> {
                std::minstd_rand random(number);
                for (std::size_t i = 0; i < count; ++i) {
                    here.co_spawn(waits_for(some.add()), "steady " + std::to_string(i));
                    here.co_spawn(waits_for(others.add()), "victim " + std::to_string(i));
                }
                co_await yield();
                task_capture capture(here.loop(), no_limit);
                int steps = 1;
                while (!takes_a_step(capture)) {
                    ++steps;
                    // The newest are recorded first, 16 per step. Ends tasks around the cursor, and
                    // others.
                    const std::size_t done = static_cast<std::size_t>(steps) * 8;
                    for (std::size_t i = done - 4; i < done + 4 && number % 2 == 0; ++i) {
                        others.end(count - std::min(i, count));
                    }
                    for (int i = 0; i < 10; ++i) {
                        others.end(random() % count);
                    }
                    here.co_spawn(waits_for(some.add()), "late");
                    co_await yield();
                    co_await yield();
                }
                EXPECT_GT(steps, 10);
                expect_each_once(capture.take(), count, count);
                some.end_all();
                others.end_all();
            }(ctx, steady, victims, seed));
    }
}

TEST(DumpSlices, EverythingBehindTheCursorEnds) {
    io_context ctx;
    crowd old;
    crowd recent;
    coil_test::run_on(ctx, [](io_context& here, crowd& behind, crowd& recorded) -> task<> {
        for (int i = 0; i < 100; ++i) {
            here.co_spawn(waits_for((i < 84 ? behind : recorded).add()));
        }
        co_await yield();
        task_capture capture(here.loop(), no_limit);
        EXPECT_FALSE(takes_a_step(capture));
        behind.end_all();
        co_await sleep_for(1ms);
        EXPECT_TRUE(takes_a_step(capture));
        EXPECT_LE(capture.take().tasks.size(), 17U);
        EXPECT_EQ(count_of(here.dump_tasks(), "\n  task "), 17U);
        recorded.end_all();
    }(ctx, old, recent));
}

/// Children of supervisors end, until a supervisor is empty while it is being recorded.
TEST(DumpSlices, ChildrenEndAndStartBetweenSlices) {
    static constexpr std::size_t count = 60;
    for (unsigned seed = 0; seed < static_cast<unsigned>(coil_test::rounds(40, 2000)); ++seed) {
        io_context ctx;
        crowd steady;
        crowd victims;
        coil_test::run_on(
            ctx, [](io_context& here, crowd& some, crowd& others, unsigned number) -> task<> {
                std::minstd_rand random(number);
                std::array<supervisor, 4> mixed;
                std::array<supervisor, 4> doomed;
                for (std::size_t i = 0; i < count; ++i) {
                    static_cast<void>(
                        mixed[i % 4].spawn(waits_for(some.add()), "steady " + std::to_string(i)));
                    static_cast<void>(doomed[i % 4].spawn(waits_for(others.add()),
                                                          "victim " + std::to_string(i)));
                }
                co_await yield();
                task_capture capture(here.loop(), no_limit);
                int steps = 1;
                while (!takes_a_step(capture)) {
                    if (++steps > static_cast<int>(number % 8)) {
                        others.end_all();
                    }
                    others.end(random() % count);
                    static_cast<void>(mixed[random() % 4].spawn(waits_for(some.add()), ""));
                    co_await yield();
                    co_await yield();
                }
                EXPECT_GT(steps, 4);
                expect_each_once(capture.take(), count, count);
                some.end_all();
                others.end_all();
                for (auto* group : {&mixed, &doomed}) {
                    for (supervisor& each : *group) {
                        co_await each.join();
                    }
                }
            }(ctx, steady, victims, seed));
    }
}

/// The scopes are destroyed with their children while a cursor is among them.
TEST(DumpSlices, AScopeIsDestroyedBetweenSlices) {
    io_context ctx;
    crowd all;
    coil_test::run_on(ctx, [](io_context& here, crowd& tasks) -> task<> {
        for (int at = 2; at < 16; ++at) {
            task_capture capture(here.loop(), at % 2 == 0 ? no_limit : 40);
            {
                supervisor first;
                supervisor second;
                for (int i = 0; i < 40; ++i) {
                    static_cast<void>(first.spawn(waits_for(tasks.add()), ""));
                    static_cast<void>(second.spawn(waits_for(tasks.add()), ""));
                }
                co_await yield();
                for (int i = 0; i < at / 2; ++i) {
                    static_cast<void>(takes_a_step(capture));
                }
            }
            while (!takes_a_step(capture)) {
            }
            EXPECT_LE(names_of(capture.take())[""], 81);
        }
    }(ctx, all));
}

TEST(DumpSlices, TwoSnapshotsAtOnce) {
    static constexpr std::size_t count = 100;
    io_context ctx;
    crowd all;
    coil_test::run_on(ctx, [](io_context& here, crowd& tasks) -> task<> {
        supervisor some;
        for (std::size_t i = 0; i < count; ++i) {
            const std::string name = "steady " + std::to_string(i);
            if (i % 2 == 0) {
                here.co_spawn(waits_for(tasks.add()), name);
            } else {
                static_cast<void>(some.spawn(waits_for(tasks.add()), name));
            }
        }
        co_await yield();
        task_capture first(here.loop(), no_limit);
        task_capture second(here.loop(), no_limit);
        static_cast<void>(takes_a_step(first));
        for (bool more = true; more;) {
            more = !takes_a_step(first);
            more = !takes_a_step(second) || more;
            EXPECT_EQ(count_of(here.dump_tasks(), "'steady "), count); // a third one
            co_await yield();
        }
        expect_each_once(first.take(), count);
        expect_each_once(second.take(), count);
        tasks.end_all();
        co_await some.join();
    }(ctx, all));
}

/// The frame of a task that holds a snapshot in progress is destroyed by the shutdown, and so are
/// the tasks around its cursors.
TEST(DumpSlices, AShutdownBetweenSlices) {
    for (int steps = 2; steps < 48; ++steps) {
        io_context ctx;
        crowd all;
        std::atomic<bool> release = false;
        ctx.co_spawn([](io_context& here, crowd& tasks, std::atomic<bool>& go, int many) -> task<> {
            supervisor some;
            for (int i = 0; i < 100; ++i) {
                here.co_spawn(waits_for(tasks.add()));
                static_cast<void>(some.spawn(waits_for(tasks.add()), ""));
            }
            for (int i = 0; i < 40; ++i) {
                here.co_spawn([](std::atomic<bool>& b) -> task<> {
                    co_await blocking([&b] { b.wait(false); });
                }(go));
            }
            co_await sleep_for(1ms);
            task_capture capture(here.loop(), many % 2 == 0 ? no_limit : 90);
            for (int i = 0; i < many / 2; ++i) {
                static_cast<void>(takes_a_step(capture));
            }
            here.stop();
            go = true;
            go.notify_all();
            co_await sleep_for(1h);
        }(ctx, all, release, steps));
        ctx.run();
        EXPECT_EQ(ctx.dump_tasks(), "context io_context: 0 tasks\n");
    }
}

task<> sleeps() { co_await sleep_for(1h); }

/// Only what exceeds the limit is omitted. Each combinator has a separate limit, because its
/// children are recorded in one slice.
TEST(DumpSlices, Limits) {
    io_context ctx;
    ctx.co_spawn([](io_context& here) -> task<> {
        const auto is_cut = [](const std::string& text) {
            return count_of(text, "not all of them shown") > 0;
        };
        supervisor some;
        for (int i = 0; i < 10; ++i) {
            here.co_spawn(sleeps());
            static_cast<void>(some.spawn(sleeps(), ""));
        }
        co_await yield();
        EXPECT_FALSE(is_cut(here.dump_tasks(21)));
        EXPECT_TRUE(is_cut(here.dump_tasks(20)));
        EXPECT_TRUE(is_cut(here.dump_tasks(5)));
        here.co_spawn([]() -> task<> {
            std::vector<task<>> all;
            for (int i = 0; i < 5000; ++i) {
                all.push_back(sleeps());
            }
            co_await when_all(std::move(all));
        }());
        co_await yield();
        const std::string text = here.dump_tasks();
        EXPECT_TRUE(is_cut(text));
        EXPECT_EQ(count_of(text, "\n  task "), 12U);
        EXPECT_EQ(count_of(text, "\n    child "), 10U + 4095);
        here.stop();
        co_await sleep_for(1h);
    }(ctx));
    ctx.run();
}

/// Fills a context with sleeping tasks.
void fill(io_context& ctx, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        ctx.co_spawn([]() -> task<> { co_await sleep_for(1h); }());
    }
    while (ctx.metrics().tasks < count) {
        std::this_thread::sleep_for(1ms);
    }
}

/// Counts its turns, which stay short during a snapshot.
task<> counts_turns(std::atomic<std::uint64_t>& turns) {
    for (;;) {
        ++turns;
        co_await yield();
    }
}

TEST(DumpSlices, TheContextGoesOnMeanwhile) {
    static constexpr std::size_t count = 50'000;
    io_context ctx;
    ctx.start();
    fill(ctx, count);
    std::atomic<std::uint64_t> turns = 0;
    ctx.co_spawn(counts_turns(turns));
    while (turns == 0) {
        std::this_thread::sleep_for(1ms);
    }
    const std::uint64_t before = turns;
    const std::string text = ctx.dump_tasks(no_limit);
    EXPECT_GE(turns - before, 5U);
    EXPECT_EQ(count_of(text, "\n  task "), count + 1);
    ctx.stop();
    ctx.join();
}

/// Several threads request dumps simultaneously while the context is stopped.
TEST(DumpSlices, AStopDuringLongSnapshots) {
    for (int round = 0; round < coil_test::rounds(10, 200); ++round) {
        io_context ctx;
        ctx.start();
        fill(ctx, 5000);
        std::vector<std::thread> askers;
        std::atomic<int> begun = 0;
        for (int i = 0; i < 3; ++i) {
            askers.emplace_back([&] {
                ++begun;
                EXPECT_EQ(count_of(ctx.dump_tasks(no_limit), "context io_context: "), 1U);
            });
        }
        while (begun < 3) {
            std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200 * (round % 10)));
        ctx.stop();
        ctx.join();
        for (std::thread& each : askers) {
            each.join();
        }
    }
}

/// A coroutine blocks the context after a snapshot has begun: the caller gives up, and the context
/// forgets the snapshot.
TEST(DumpSlices, TheContextIsBlockedInTheMiddle) {
    io_context ctx;
    ctx.start();
    fill(ctx, 50'000);
    std::atomic<bool> asked = false;
    std::atomic<bool> answered = false;
    ctx.co_spawn([](std::atomic<bool>& begun, std::atomic<bool>& over) -> task<> {
        while (!begun) {
            co_await sleep_for(100us);
        }
        for (int i = 0; i < 3; ++i) { // the snapshot has begun, and has slices left
            co_await yield();
        }
        over.wait(false);
    }(asked, answered));
    std::string text;
    std::thread asker([&] {
        asked = true;
        text = ctx.dump_tasks(no_limit);
        answered = true;
        answered.notify_all();
    });
    asker.join();
    EXPECT_EQ(count_of(text, "no answer within 2 s"), 1U) << text.substr(0, 200);
    EXPECT_EQ(count_of(ctx.dump_tasks(no_limit), "\n  task "), 50'000U);
    ctx.stop();
    ctx.join();
}

/// More tasks are ready than the ring of the queue has places for, and none has started.
TEST(DumpSlices, TasksBehindTheRingOfTheQueueAreReady) {
    constexpr std::size_t count = 4000; // and the one that asks
    std::size_t ready = 0;
    std::size_t ready_in_slices = 0;
    io_context ctx;
    const auto count_ready = [](const context_snapshot& snapshot) {
        std::size_t number = 0;
        for (const task_record& task : snapshot.tasks) {
            number += task.wait.kind == detail::wait_record::what::ready ? 1U : 0U;
        }
        return number;
    };
    ctx.co_spawn([](auto count_them, std::size_t& all, std::size_t& sliced) -> task<> {
        for (std::size_t i = 0; i < count; ++i) {
            co_spawn([]() -> task<> { co_return; }());
        }
        task_capture capture(detail::required_loop(), no_limit);
        EXPECT_TRUE(capture.step(task_capture::unlimited));
        all = count_them(capture.take());
        task_capture slices(detail::required_loop(), no_limit);
        while (!takes_a_step(slices)) {
        }
        sliced = count_them(slices.take());
        co_return;
    }(count_ready, ready, ready_in_slices));
    ctx.run();
    EXPECT_EQ(ready, count);
    EXPECT_EQ(ready_in_slices, count);
}

} // namespace
