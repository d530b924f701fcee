// An exception that escapes a task that nothing awaits: the message shows the awaits through which
// it has passed.

#include "support/printed.hpp"
#include "support/run.hpp"

#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace failing {

task<> deep() {
    co_await yield();
    throw std::runtime_error("out of money");
}
task<> middle() { co_await deep(); }
task<> top() { co_await middle(); }

task<> translates() {
    try {
        co_await middle();
    } catch (const std::runtime_error&) { // NOLINT(*-empty-catch)
    }
    throw std::runtime_error("another"); // perhaps in the memory of the first exception
}
task<> translates_inside() {
    try {
        co_await middle();
    } catch (const std::runtime_error&) {
        throw std::logic_error("another");
    }
}
task<> above_translates(bool inside) { co_await (inside ? translates_inside() : translates()); }

task<> sleeps_and_fails(std::chrono::milliseconds time) {
    co_await sleep_for(time);
    throw std::runtime_error("out of money");
}
task<> has_children() { co_await when_all(middle(), sleeps_and_fails(20ms)); }

async_generator<int> numbers() {
    co_yield 1;
    co_await deep();
}
task<> reads_numbers() {
    auto all = numbers();
    while (co_await all.next()) {
    }
}

task<> passes(int levels) {
    if (levels == 0) {
        co_await deep();
    } else {
        co_await passes(levels - 1);
    }
}

} // namespace failing

namespace {

using coil_test::printed_by;
using lines = std::vector<std::string>;

/// The functions of the chains in a text.
lines awaits_in(const std::string& text) {
    lines found;
    for (auto at = text.find("\n    #"); at != std::string::npos;
         at = text.find("\n    #", at + 1)) {
        const auto begin = text.find(' ', at + 6) + 1;
        found.push_back(text.substr(begin, text.find(" [", begin) - begin));
    }
    return found;
}

std::string printed_by_task(task<> work, const char* name = nullptr) {
    return printed_by([&] {
        io_context ctx;
        if (name == nullptr) {
            ctx.co_spawn(std::move(work));
        } else {
            ctx.co_spawn(std::move(work), name);
        }
        ctx.run();
    });
}

const lines chain{"failing::deep()", "failing::middle()", "failing::top()"};

// mistake 12: an exception leaves a task through several awaits
// shows: the chain of awaits through which it has passed
TEST(UnhandledAwaits, AreThoseThatTheExceptionHasComeUp) {
    const std::string text = printed_by_task(failing::top());
    EXPECT_EQ(text.find("coil: io_context: an unhandled exception: out of money ("), 0U) << text;
    EXPECT_NE(text.find("\n  awaits:\n    #0 failing::deep() ["), std::string::npos) << text;
    EXPECT_EQ(awaits_in(text), chain) << text;
}

TEST(UnhandledAwaits, AreThoseOfANamedTask) {
    const std::string text = printed_by_task(failing::top(), "a payment");
    EXPECT_EQ(text.find("coil: io_context: task 'a payment': an unhandled exception: out of money "
                        "(spawned at "),
              0U)
        << text;
    EXPECT_EQ(awaits_in(text), chain) << text;
}

/// No symbols are looked up for the only coroutine of a task with a name.
TEST(UnhandledAwaits, AreOmittedIfTheLineNamesTheOnlyCoroutine) {
    EXPECT_EQ(awaits_in(printed_by_task(failing::deep())), lines{});
    const std::string named = printed_by_task(failing::deep(), "a payment");
    EXPECT_NE(named.find("task 'a payment': an unhandled exception: out of money ("),
              std::string::npos)
        << named;
    EXPECT_EQ(named.find("failing::deep()"), std::string::npos) << named;
}

TEST(UnhandledAwaits, IncludeTheOnlyCoroutineIfTheLineNamesNone) {
    const std::string text = printed_by_task([]() -> task<> {
        supervisor children;
        children.spawn(failing::deep());
        co_await children.join();
    }());
    const std::string place =
        coil_test::checks ? R"( \(spawned at [^ ]*unhandled_test\.cpp:[0-9]+\))" : "";
    const std::regex line("coil: io_context: an unhandled exception: out of money" + place + "\n");
    EXPECT_TRUE(std::regex_search(text, line, std::regex_constants::match_continuous)) << text;
    EXPECT_EQ(awaits_in(text), lines{"failing::deep()"}) << text;
}

/// A coroutine that has received one exception and throws another is the first of its chain.
TEST(UnhandledAwaits, BeginWhereTheExceptionWasThrown) {
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(awaits_in(printed_by_task(failing::above_translates(true))),
                  (lines{"failing::translates_inside()", "failing::above_translates(bool)"}));
        EXPECT_EQ(awaits_in(printed_by_task(failing::above_translates(false))),
                  (lines{"failing::translates()", "failing::above_translates(bool)"}));
    }
}

TEST(UnhandledAwaits, OfTasksThatFailOneAfterTheOther) {
    const std::string text = printed_by([] {
        io_context ctx;
        for (int i = 0; i < 20; ++i) {
            ctx.co_spawn(failing::top());
        }
        ctx.run();
    });
    lines all;
    for (int i = 0; i < 20; ++i) {
        all.insert(all.end(), chain.begin(), chain.end());
    }
    EXPECT_EQ(awaits_in(text), all) << text;
}

/// The parent receives the first exception after its other child has ended with another one.
TEST(UnhandledAwaits, ContinueAboveChildren) {
    const std::string text = printed_by_task(failing::has_children());
    const lines awaits = awaits_in(text);
    ASSERT_EQ(awaits.size(), 4U) << text;
    EXPECT_EQ(awaits[0].find("failing::sleeps_and_fails("), 0U); // the other one, by itself
    EXPECT_EQ(lines(awaits.begin() + 1, awaits.end()),
              (lines{"failing::deep()", "failing::middle()", "failing::has_children()"}))
        << text;
}

TEST(UnhandledAwaits, ContinueAboveAGenerator) {
    const std::string text = printed_by_task(failing::reads_numbers());
    EXPECT_EQ(awaits_in(text),
              (lines{"failing::deep()", "failing::numbers()", "failing::reads_numbers()"}))
        << text;
}

TEST(UnhandledAwaits, AreTruncatedAfter24) {
    const std::string text = printed_by_task(failing::passes(99));
    EXPECT_EQ(awaits_in(text).size(), 24U) << text;
    EXPECT_NE(text.find("\n    and 77 more\n"), std::string::npos) << text;
}

TEST(UnhandledAwaits, OfAHandleThatIsDroppedLater) {
    const std::string text = printed_by([] {
        io_context ctx;
        [[maybe_unused]] const auto handle = ctx.spawn(failing::top());
        ctx.run();
    });
    EXPECT_EQ(awaits_in(text), chain) << text;
}

TEST(UnhandledAwaits, OfTasksOfARunLoopAndOfAsyncTasks) {
    const std::string text = printed_by([] {
        run_loop loop;
        loop.spawn([]() -> task<> {
            co_await []() -> task<> {
                throw 7;
                co_return;
            }();
        }());
        loop.run();
    });
    EXPECT_EQ(awaits_in(text).size(), 2U) << text;
}

/// The exception may have the address of an earlier one, which has left tasks; that one's chain
/// must not be reported.
TEST(UnhandledAwaits, AreNotPrintedForAPostedFunction) {
    const std::string text = printed_by([] {
        io_context ctx;
        ctx.co_spawn(failing::deep());
        ctx.run();
        ctx.post([] { throw std::runtime_error("out of money"); });
        ctx.run();
    });
    EXPECT_EQ(awaits_in(text), lines{}) << text;
}

} // namespace
