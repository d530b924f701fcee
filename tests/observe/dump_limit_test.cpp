// What a dump leaves out if there are more tasks than its limit.

#include "crowd.hpp"
#include "support.hpp"

#include <map>
#include <random>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;
using coil_test::crowd;
using coil_test::names_of;
using coil_test::takes_a_step;
using coil_test::waits_for;
using detail::context_snapshot;
using detail::task_capture;

task<> sleeps_an_hour() { co_await sleep_for(1h); }

task<> supervises(supervisor& all, int count) {
    for (int i = 0; i < count; ++i) {
        static_cast<void>(all.spawn(sleeps_an_hour(), "child " + std::to_string(i)));
    }
    co_await yield();
}

/// The tasks that have waited longest are at the end of the lists.
TEST(DumpLimit, KeepsTheNewestAndTheOldest) {
    io_context ctx;
    ctx.co_spawn([](io_context& here) -> task<> {
        for (int i = 0; i < 100; ++i) {
            here.co_spawn(sleeps_an_hour(), "top " + std::to_string(i));
        }
        co_await yield();
        const std::string text = here.dump_tasks(20);
        EXPECT_EQ(count_of(text, "\n  task "), 20U) << text;
        const auto at = [&text](const std::string& what) { return text.find(what); };
        for (int i = 0; i < 10; ++i) { // this task is the oldest
            EXPECT_NE(at("'top " + std::to_string(99 - i) + "'"), std::string::npos) << text;
            EXPECT_EQ(at("'top " + std::to_string(i) + "'") != std::string::npos, i < 9) << text;
        }
        EXPECT_LT(at("'top 90'"), at("\n  and 81 more\n"));
        EXPECT_LT(at("\n  and 81 more\n"), at("'top 8'"));
        here.stop();
    }(ctx));
    ctx.run();
}

TEST(DumpLimit, KeepsTheNewestAndTheOldestChildren) {
    io_context ctx;
    ctx.co_spawn([](io_context& here) -> task<> {
        supervisor all;
        co_await supervises(all, 100);
        const std::string text = here.dump_tasks(11);
        EXPECT_EQ(count_of(text, "\n    child "), 10U) << text;
        EXPECT_EQ(count_of(text, ": 100 children"), 1U) << text;
        EXPECT_EQ(count_of(text, "\n    and 90 more\n"), 1U) << text;
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(count_of(text, "'child " + std::to_string(99 - i) + "'"), 1U) << text;
            EXPECT_EQ(count_of(text, "'child " + std::to_string(i) + "'"), 1U) << text;
        }
        all.cancel();
        co_await all.join();
    }(ctx));
    ctx.run();
}

/// The children of combinations count towards the limit, and their number is not known beforehand.
TEST(DumpLimit, KeepsTheOldestTasksIfTasksHaveChildren) {
    io_context ctx;
    ctx.co_spawn([](io_context& here) -> task<> {
        for (int i = 0; i < 100; ++i) {
            here.co_spawn([]() -> task<> { co_await when_all(sleeps_an_hour()); }(),
                          "top " + std::to_string(i));
        }
        co_await yield();
        const std::string text = here.dump_tasks(40);
        for (int i = 0; i < 10; ++i) { // this task is the oldest, and has no child
            EXPECT_EQ(count_of(text, "'top " + std::to_string(99 - i) + "'"), 1U) << text;
            EXPECT_EQ(count_of(text, "'top " + std::to_string(i) + "'"), 1U) << text;
        }
        EXPECT_LT(text.find("'top 90'"), text.find("\n  and 80 more\n")) << text;
        EXPECT_LT(text.find("\n  and 80 more\n"), text.find("'top 9'")) << text;
        EXPECT_LT(text.find("'top 9'"), text.find("'top 0'")) << text;
        const std::string json = here.dump_tasks_json(40);
        EXPECT_EQ(count_of(json, R"("omitted":80,"omitted_behind":10,)"), 1U) << json;
        here.stop();
    }(ctx));
    ctx.run();
}

/// A small limit makes a dump of very many tasks and children cheap.
TEST(DumpLimit, BoundsTheWork) {
    static constexpr int count = 20'000;
    static constexpr std::size_t most = 10;
    io_context ctx;
    ctx.co_spawn([](io_context& here) -> task<> {
        for (int i = 0; i < count; ++i) {
            here.co_spawn(sleeps_an_hour());
        }
        co_await yield();
        task_capture tasks(here.loop(), most);
        EXPECT_TRUE(tasks.step(task_capture::unlimited));
        EXPECT_LE(tasks.visited(), most + 2);
        EXPECT_EQ(tasks.take().tasks.size(), most);
        here.stop();
    }(ctx));
    ctx.run();
    io_context other;
    coil_test::run_on(other, [](io_context& here) -> task<> {
        supervisor all;
        co_await supervises(all, count);
        task_capture children(here.loop(), most);
        EXPECT_TRUE(children.step(task_capture::unlimited));
        EXPECT_LE(children.visited(), most + 4);
        const context_snapshot snapshot = children.take();
        const detail::group_record& group = *snapshot.groups.begin();
        EXPECT_EQ(group.omitted.count + group.children.size(), std::size_t{count});
        all.cancel();
        co_await all.join();
    }(other));
}

/// A scope is mentioned even if the tasks have used up the limit.
TEST(DumpLimit, EveryScopeIsMentioned) {
    io_context ctx;
    ctx.co_spawn([](io_context& here) -> task<> {
        supervisor one;
        supervisor another;
        co_await supervises(one, 20);
        co_await supervises(another, 7);
        for (int i = 0; i < 30; ++i) {
            here.co_spawn(sleeps_an_hour());
        }
        co_await yield();
        const std::string text = here.dump_tasks(10);
        EXPECT_EQ(count_of(text, "  scope or supervisor "), 2U) << text;
        EXPECT_EQ(count_of(text, ": 20 children"), 1U) << text;
        EXPECT_EQ(count_of(text, "\n    and 20 more\n"), 1U) << text;
        EXPECT_EQ(count_of(text, ": 7 children"), 1U) << text;
        EXPECT_EQ(count_of(text, "\n    and 7 more\n"), 1U) << text;
        EXPECT_EQ(count_of(text, "and more scopes"), 0U) << text;
        const std::string json = here.dump_tasks_json(10);
        EXPECT_EQ(count_of(json, R"("omitted":20,"omitted_behind":0,"children":[])"), 1U) << json;
        EXPECT_NE(coil_test::parsed(json).find("group: 0 children, 0 waiting, 7 omitted"),
                  std::string::npos);
        const std::string less = here.dump_tasks(1);
        EXPECT_EQ(count_of(less, "  scope or supervisor "), 1U) << less;
        EXPECT_EQ(count_of(less, "\n  and more scopes or supervisors\n"), 1U) << less;
        EXPECT_EQ(count_of(here.dump_tasks_json(1), R"("more_groups":true)"), 1U);
        for (supervisor* each : {&one, &another}) {
            each->cancel();
            co_await each->join();
        }
        here.stop();
    }(ctx));
    ctx.run();
}

/// Tasks and children end at both edges of the omitted part, and elsewhere.
TEST(DumpLimit, WhileOthersEndAnywhere) {
    static constexpr std::size_t count = 120;
    for (unsigned seed = 0; seed < static_cast<unsigned>(coil_test::rounds(60, 2000)); ++seed) {
        io_context ctx;
        crowd steady;
        crowd victims;
        coil_test::run_on(
            ctx, [](io_context& here, crowd& some, crowd& others, unsigned number) -> task<> {
                std::minstd_rand random(number);
                supervisor all;
                const bool are_children = number % 2 == 0;
                const auto add = [&](event& over, const std::string& name) {
                    if (are_children) {
                        static_cast<void>(all.spawn(waits_for(over), name));
                    } else {
                        here.co_spawn(waits_for(over), name);
                    }
                };
                for (std::size_t i = 0; i < count; ++i) {
                    add(some.add(), "steady " + std::to_string(i));
                    add(others.add(), "victim " + std::to_string(i));
                }
                co_await yield();
                task_capture capture(here.loop(), 100 + random() % 150);
                for (unsigned steps = 0; !takes_a_step(capture); ++steps) {
                    if (number % 3 == 0 && steps == number % 7) {
                        others.end_all();
                    }
                    for (int i = 0; i < 12; ++i) {
                        others.end(random() % count);
                    }
                    add(others.add(), "late");
                    co_await yield();
                    co_await yield();
                }
                std::map<std::string, int> names = names_of(capture.take());
                for (std::size_t i = 0; i < count; ++i) {
                    const bool is_at_an_end = i < 20 || i >= count - 20;
                    const int found = names["steady " + std::to_string(i)];
                    EXPECT_LE(found, 1) << i << " of " << number;
                    EXPECT_GE(found, is_at_an_end ? 1 : 0) << i << " of " << number;
                    EXPECT_LE(names["victim " + std::to_string(i)], 1) << i << " of " << number;
                }
                EXPECT_EQ(names["late"], 0);
                some.end_all();
                others.end_all();
                co_await all.join();
            }(ctx, steady, victims, seed));
    }
}

/// The newest and the oldest tasks share the limit. Some between them end while they are skipped.
TEST(DumpLimit, KeepsTheOldestWhileOthersEnd) {
    io_context ctx;
    crowd all;
    coil_test::run_on(ctx, [](io_context& here, crowd& tasks) -> task<> {
        static constexpr std::size_t count = 400;
        static constexpr std::size_t most = 64;
        static constexpr std::size_t sure = 10;
        for (std::size_t i = 0; i < count; ++i) {
            here.co_spawn(waits_for(tasks.add()), "steady " + std::to_string(i));
        }
        co_await yield();
        task_capture capture(here.loop(), most);
        std::size_t ended = 0;
        while (!takes_a_step(capture)) {
            for (int i = 0; i < 3; ++i) {
                tasks.end(count / 2 - ended++);
            }
            co_await yield();
        }
        EXPECT_GT(ended, 5U);
        const context_snapshot snapshot = capture.take();
        std::map<std::string, int> names = names_of(snapshot);
        // This task and the one that awaits it may be among the oldest.
        for (std::size_t i = 0; i < sure; ++i) {
            EXPECT_EQ(names["steady " + std::to_string(i)], 1) << i;
            EXPECT_EQ(names["steady " + std::to_string(count - 1 - i)], 1) << i;
        }
        EXPECT_LE(snapshot.tasks.size(), most);
        EXPECT_EQ(snapshot.omitted.behind, most / 2);
        EXPECT_GE(snapshot.omitted.count, count - most - ended);
        EXPECT_EQ(snapshot.result, context_snapshot::how::cut);
        tasks.end_all();
    }(ctx, all));
}

} // namespace
