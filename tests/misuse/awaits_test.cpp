// The message with which misuse ends a program shows the task that ran: its name, its chain of
// awaits, and the stack of the thread.

#include "support/death.hpp"
#include "support/printed.hpp"
#include "support/run.hpp"

#include <barrier>
#include <string>
#include <thread>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace guilty {

[[gnu::noinline]] void unlocks_what_is_not_locked() {
    mutex m;
    m.unlock();
    asm volatile("" ::: "memory"); // no tail call
}

task<> innermost() {
    co_await yield();
    unlocks_what_is_not_locked();
}
task<> middle() { co_await innermost(); }
task<> outermost() { co_await middle(); }
task<> waits_for_children() { co_await when_all(middle(), sleep_for(1h)); }
task<> joins() {
    scope children;
    children.spawn(waits_for_children(), "a child");
    co_await children.join();
}

task<> fails_an_assertion() {
    co_await yield();
    COIL_ASSERT(1 + 1 == 3);
}
task<> awaits_it() { co_await fails_an_assertion(); }

} // namespace guilty

namespace {

using coil_test::printed_by_the_death_of;

/// The lines below a title, without their indentation, numbers and modules.
std::vector<std::string> list_of(const std::string& text, const std::string& title) {
    std::vector<std::string> lines;
    auto at = text.find("\n  " + title + ":\n");
    if (at == std::string::npos) {
        return lines;
    }
    at = text.find('\n', at + 1) + 1;
    while (text.compare(at, 5, "    #") == 0) {
        const auto begin = text.find(' ', at + 5) + 1;
        const auto end = text.find(" [", begin);
        lines.push_back(text.substr(begin, end - begin));
        at = text.find('\n', at) + 1;
    }
    return lines;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

using lines = std::vector<std::string>;

/// Expects the functions in the stack, in this order.
void expect_stack(const std::string& text, const lines& functions) {
    const lines stack = list_of(text, "stack");
    std::size_t next = 0;
    for (const std::string& line : stack) {
        if (next < functions.size() && has(line, functions[next])) {
            ++next;
        }
    }
    EXPECT_EQ(next, functions.size()) << text;
}

TEST(AwaitsOfAMisuse, AreThoseOfTheTaskThatRuns) {
    constexpr unsigned line = __LINE__ + 3;
    const std::string text = printed_by_the_death_of([] {
        io_context ctx;
        ctx.co_spawn(guilty::outermost(), "the guilty one");
        ctx.co_spawn([]() -> task<> { co_await sleep_for(1h); }(), "another");
        ctx.run();
    });
    EXPECT_EQ(text.find("coil: unlock() of a mutex that is not locked.\n"), 0U) << text;
    EXPECT_TRUE(has(text, "\n  task 'the guilty one' spawned at " __FILE__ ":" +
                              std::to_string(line) + "\n"))
        << text;
    EXPECT_FALSE(has(text, "another")) << text;
    EXPECT_EQ(list_of(text, "awaits"),
              (lines{"guilty::innermost()", "guilty::middle()", "guilty::outermost()"}))
        << text;
    expect_stack(text, {"guilty::unlocks_what_is_not_locked()", "guilty::innermost()",
                        "event_loop::run_ready", "::run()"});
    EXPECT_FALSE(has(text, "end_with_misuse")) << text;
    EXPECT_FALSE(has(text, "print_running_task")) << text;
}

TEST(AwaitsOfAMisuse, ContinueAboveChildren) {
    const std::string text = printed_by_the_death_of([] {
        io_context ctx;
        ctx.co_spawn(guilty::joins());
        ctx.run();
    });
    EXPECT_EQ(list_of(text, "awaits"), (lines{"guilty::innermost()", "guilty::middle()",
                                              "guilty::waits_for_children()", "guilty::joins()"}))
        << text;
    EXPECT_TRUE(has(text, "\n  task 'a child'")) << text;
}

/// The coroutine that the loop has resumed has ended; the one that awaited it runs.
TEST(AwaitsOfAMisuse, AreNoneOfAnotherTaskAfterAChildHasEnded) {
    const std::string text = printed_by_the_death_of([] {
        io_context ctx;
        ctx.co_spawn([]() -> task<> { co_await sleep_for(1h); }());
        ctx.co_spawn([]() -> task<> {
            co_await []() -> task<> { co_await yield(); }();
            guilty::unlocks_what_is_not_locked();
        }());
        ctx.run();
    });
    expect_stack(text, {"guilty::unlocks_what_is_not_locked()"});
    EXPECT_LE(list_of(text, "awaits").size(), 1U) << text;
    for (const std::string& line : list_of(text, "awaits")) { // its frame may have been reused
        EXPECT_TRUE(has(line, "AreNoneOfAnotherTaskAfterAChildHasEnded")) << text;
    }
}

TEST(AwaitsOfAMisuse, AreLeftOutBetweenTasks) {
    const std::string text = printed_by_the_death_of([] {
        io_context ctx;
        ctx.co_spawn([](io_context& c) -> task<> {
            co_await yield();
            c.stop();
        }(ctx));
        ctx.run();
        guilty::unlocks_what_is_not_locked();
    });
    EXPECT_EQ(list_of(text, "awaits"), lines{}) << text;
    EXPECT_FALSE(has(text, "\n  task")) << text;
    expect_stack(text, {"guilty::unlocks_what_is_not_locked()"});
}

TEST(AwaitsOfAMisuse, OutsideOfAContextThereIsAStack) {
    const std::string text = printed_by_the_death_of([] { static_cast<void>(&this_context()); });
    EXPECT_TRUE(has(text, "outside of an io_context")) << text;
    EXPECT_EQ(list_of(text, "awaits"), lines{}) << text;
    expect_stack(text, {"OutsideOfAContextThereIsAStack"});
    EXPECT_FALSE(has(text, "end_without_context")) << text;
}

TEST(AwaitsOfAMisuse, AreKnownOnThreadsOfAPool) {
    const std::string text = printed_by_the_death_of([] {
        thread_pool pool(1);
        thread_pool other(1);
        run([](thread_pool& here, thread_pool& there) -> task<> {
            co_await on(here, [](thread_pool& p) -> task<> {
                co_await [](thread_pool& q) -> task<> {
                    co_await on(q, []() -> task<> { co_return; }());
                    guilty::unlocks_what_is_not_locked();
                }(p);
            }(there));
        }(pool, other));
    });
    EXPECT_EQ(list_of(text, "awaits").size(), 2U) << text;
    for (const std::string& line : list_of(text, "awaits")) {
        EXPECT_TRUE(has(line, "AreKnownOnThreadsOfAPool")) << text;
    }
}

TEST(AwaitsOfAMisuse, ArePrintedForAFailedAssertion) {
    if (!coil_test::checks) {
        GTEST_SKIP() << "without assertions";
    }
    const std::string text = printed_by_the_death_of([] {
        io_context ctx;
        ctx.co_spawn(guilty::awaits_it(), "asserting");
        ctx.run();
    });
    EXPECT_EQ(text.find("coil: assertion failed: 1 + 1 == 3 ("), 0U) << text;
    EXPECT_TRUE(has(text, "\n  task 'asserting' spawned at ")) << text;
    EXPECT_EQ(list_of(text, "awaits"),
              (lines{"guilty::fails_an_assertion()", "guilty::awaits_it()"}))
        << text;
    expect_stack(text, {"guilty::fails_an_assertion()"});
    EXPECT_FALSE(has(text, "assertion_failed")) << text;
}

/// Both threads print their message; one prints its stack, and the process ends without a wait.
TEST(AwaitsOfAMisuse, ArePrintedByOneOfTwoThreadsThatFailAtOnce) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string text = printed_by_the_death_of([] {
        std::barrier both(2);
        const auto fail = [&both] {
            both.arrive_and_wait();
            guilty::unlocks_what_is_not_locked();
        };
        std::thread other(fail);
        fail();
        other.join();
    });
    EXPECT_TRUE(has(text, "coil: unlock() of a mutex that is not locked.\n"));
    const auto first = text.find("  stack:\n");
    ASSERT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find("  stack:\n", first + 1), std::string::npos) << text;
    if (!coil_test::sanitized) {
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 9s);
    }
}

} // namespace
