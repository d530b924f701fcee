// this_task::backtrace(): the chain of awaits of the current task.

#include "support.hpp"

#include <vector>

using namespace coil;

namespace observed {

task<task_backtrace> innermost() { co_return co_await this_task::backtrace(); }
task<task_backtrace> middle() { co_return co_await innermost(); }
task<task_backtrace> outermost() { co_return co_await middle(); }

task<task_backtrace> in_when_all() {
    auto both = co_await when_all(middle(), innermost());
    co_return std::get<0>(both);
}

task<> keeps(task_backtrace& kept) { kept = co_await innermost(); }

task<task_backtrace> in_a_scope() {
    task_backtrace kept;
    scope children;
    children.spawn(keeps(kept), "a child");
    co_await children.join();
    co_return kept;
}

async_generator<int> numbers(task_backtrace& kept) {
    kept = co_await this_task::backtrace();
    co_yield 1;
}
task<task_backtrace> in_a_generator() {
    task_backtrace kept;
    auto all = numbers(kept);
    static_cast<void>(co_await all.next());
    co_return kept;
}

} // namespace observed

namespace {

using coil_test::run_on;

std::vector<std::string> functions_of(const task_backtrace& trace) {
    std::vector<std::string> names;
    for (const backtrace_entry& entry : trace.entries) {
        EXPECT_FALSE(entry.module.empty());
        EXPECT_NE(entry.offset, 0U);
        names.push_back(entry.function);
    }
    return names;
}

using names = std::vector<std::string>;

TEST(Backtrace, IsTheChainOfAwaits) {
    io_context ctx;
    EXPECT_EQ(functions_of(run_on(ctx, observed::outermost())),
              (names{"observed::innermost()", "observed::middle()", "observed::outermost()"}));
}

TEST(Backtrace, ContinuesAboveTheChildrenOfWhenAll) {
    io_context ctx;
    EXPECT_EQ(functions_of(run_on(ctx, observed::in_when_all())),
              (names{"observed::innermost()", "observed::middle()", "observed::in_when_all()"}));
}

TEST(Backtrace, ContinuesAboveTheChildrenOfAScopeThatIsJoined) {
    io_context ctx;
    const task_backtrace trace = run_on(ctx, observed::in_a_scope());
    EXPECT_EQ(trace.name, "a child");
    EXPECT_EQ(functions_of(trace),
              (names{"observed::innermost()", "observed::keeps(coil::task_backtrace&)",
                     "observed::in_a_scope()"}));
}

TEST(Backtrace, EndsAboveAGenerator) {
    io_context ctx;
    EXPECT_EQ(functions_of(run_on(ctx, observed::in_a_generator())),
              (names{"observed::numbers(coil::task_backtrace&)", "observed::in_a_generator()"}));
}

TEST(Backtrace, HasTheNameOfTheTask) {
    io_context ctx;
    auto handle = ctx.spawn(observed::outermost(), "the name");
    ctx.run();
    const task_backtrace trace = handle.get();
    EXPECT_EQ(trace.name, "the name");
    const std::string text = to_string(trace);
    EXPECT_TRUE(text.starts_with("task 'the name'\n#0 observed::innermost() [")) << text;
}

} // namespace
