// Exceptions of children that no await receives: the message names the child.

#include "support/printed.hpp"
#include "support/run.hpp"

#include <atomic>
#include <chrono>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::printed_by;

namespace {

task<> fails(const char* why) {
    co_await yield();
    throw std::runtime_error(why);
}
/// Fails when it is asked to stop.
task<> fails_late() {
    co_await sleep_for(10s);
    throw std::runtime_error("late");
}

task<> until(const std::atomic<bool>& flag) {
    while (!flag) {
        co_await sleep_for(1ms);
    }
}

std::string printed_by_run(task<> (*f)()) {
    return printed_by([&] { coil::run(f()); });
}

void expect_named(const std::string& text, const std::string& name, const std::string& what) {
    const std::regex line("coil: io_context: task '" + name + "': an unhandled exception: " + what +
                          " \\(spawned at [^ ]*unhandled_children_test.cpp:[0-9]+\\)\n");
    EXPECT_TRUE(std::regex_search(text, line)) << text;
}

// mistake 12: an exception leaves a child of a scope whose exception `join()` does not throw
// shows: a line on stderr with the name and the place of the child
TEST(UnhandledChild, IsTheSecondOfAScopeThatHasFailed) {
    const std::string text = printed_by_run([]() -> task<> {
        scope s;
        s.spawn(fails("first"), "one");
        s.spawn(fails("second"), "two");
        EXPECT_THROW(co_await s.join(), std::runtime_error);
    });
    expect_named(text, "two", "second");
    EXPECT_EQ(text.find("first"), std::string::npos) << text;
}

TEST(UnhandledChild, IsOfAScopeThatIsNotJoined) {
    expect_named(printed_by_run([]() -> task<> {
                     scope s;
                     s.spawn(fails("first"), "one");
                     while (!s.failed()) {
                         co_await yield();
                     }
                 }),
                 "one", "first");
}

TEST(UnhandledChild, IsOfASupervisor) {
    expect_named(printed_by_run([]() -> task<> {
                     supervisor s;
                     co_await s.spawn(fails("first"), "one");
                     co_await s.join();
                 }),
                 "one", "first");
}

TEST(UnhandledChild, IsRestarted) {
    expect_named(printed_by_run([]() -> task<> {
                     supervisor s;
                     co_await s.spawn_restarting([] { return fails("first"); },
                                                 {.initial_delay = 1ms, .max_restarts = 1}, "one");
                     co_await s.join();
                 }),
                 "one", "first");
}

TEST(UnhandledChild, IsOfATaskGroupThatIsDestroyed) {
    expect_named(printed_by_run([]() -> task<> {
                     task_group<> g;
                     g.spawn(fails("first"), "one");
                     while (g.ready() == 0) {
                         co_await yield();
                     }
                 }),
                 "one", "first");
}

TEST(UnhandledChild, HasThePlaceOfItsSpawnInDebugBuilds) {
    const std::string text = printed_by_run([]() -> task<> {
        supervisor s;
        co_await s.spawn(fails("first"));
        co_await s.join();
    });
    EXPECT_EQ(text.find("spawned at ") != std::string::npos, coil_test::checks) << text;
}

TEST(UnhandledChild, IsTheTaskOfAHandleThatLosesARace) {
    expect_named(printed_by_run([]() -> task<> {
                     co_await when_any(spawn(fails_late(), "one"), sleep_for(1ms));
                 }),
                 "one", "late");
}

// ---- losers of a race that have run elsewhere

std::string printed_beside_a_context(task<> (*f)(io_context& there)) {
    return printed_by([&] {
        io_context other;
        other.start();
        coil::run(f(other));
    });
}

TEST(UnhandledChild, HasRunOnAnotherContext) {
    const std::string text = printed_beside_a_context([](io_context& there) -> task<> {
        co_await when_any(on(there, fails_late()), sleep_for(1ms));
    });
    EXPECT_NE(text.find("an unhandled exception: late"), std::string::npos) << text;
}

TEST(UnhandledChild, HasRunOnAnotherContextUnderALimit) {
    const std::string text = printed_beside_a_context([](io_context& there) -> task<> {
        EXPECT_THROW(co_await timeout(on(there, fails_late()), 1ms), std::system_error);
    });
    EXPECT_NE(text.find("an unhandled exception: late"), std::string::npos) << text;
}

TEST(UnhandledChild, HasRunOnAThreadOfBlocking) {
    const std::string text = printed_by_run([]() -> task<> {
        std::atomic<bool> has_begun = false; // a call that has not begun would be withdrawn
        const auto waits_for_stop = [&has_begun](inplace_stop_token token) {
            has_begun = true;
            while (!token.stop_requested()) {
                std::this_thread::yield();
            }
            throw std::runtime_error("late");
        };
        co_await when_any(blocking(waits_for_stop), until(has_begun));
    });
    EXPECT_NE(text.find("an unhandled exception: late"), std::string::npos) << text;
}

/// That a task or a function was asked to stop is not a failure.
TEST(UnhandledChild, IsSilentIfItWasOnlyCancelled) {
    const std::string text = printed_beside_a_context([](io_context& there) -> task<> {
        co_await when_any(on(there, []() -> task<> { (co_await sleep_for(10s)).value(); }()),
                          sleep_for(1ms));
    });
    EXPECT_EQ(text, "");
}

} // namespace
