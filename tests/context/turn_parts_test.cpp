// The parts of a turn: its budget, and the posted functions.

#include <coil/context/detail/posted_functions.hpp>
#include <coil/context/detail/turn_budget.hpp>
#include <coil/context/io_context.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace {

using coil::detail::event_loop;
using coil::detail::posted_functions;
using coil::detail::queue_node;
using coil::detail::ready_queue;
using coil::detail::turn_budget;

constexpr std::int64_t us = 1'000;

TEST(TurnBudget, G7_GrowsWhileTurnsAreShortAndShrinksWhileTheyAreLong) {
    turn_budget budget;
    std::int64_t now = 1;
    const auto turns = [&budget, &now](int n, std::int64_t each_ns) {
        for (int i = 0; i < n; ++i) {
            budget.on_used_up(now += each_ns);
        }
        return budget.resumptions();
    };
    const unsigned first = budget.resumptions();
    EXPECT_EQ(turns(1, 2'000 * us), first); // the first turn only begins the measurement
    EXPECT_EQ(turns(1, 10 * us), 2 * first);
    EXPECT_EQ(turns(20, 10 * us), turn_budget::largest);
    EXPECT_EQ(turns(5, 500 * us), turn_budget::largest); // neither short nor long
    EXPECT_EQ(turns(1, 1'001 * us), turn_budget::largest / 2);
    EXPECT_EQ(turns(20, 2'000 * us), 1U);
    EXPECT_EQ(turns(1, 10 * us), 2U);
}

TEST(TurnBudget, ATurnThatRanOutOfWorkMeasuresNothing) {
    turn_budget budget;
    const unsigned first = budget.resumptions();
    budget.on_used_up(1);
    budget.on_left_over();
    budget.on_used_up(5'000 * us); // most of that was sleep
    EXPECT_EQ(budget.resumptions(), first);
}

std::vector<int> called;

struct function : queue_node {
    explicit function(int n) : number(n) {
        deliver = [](queue_node& node, event_loop&) noexcept {
            called.push_back(static_cast<function&>(node).number);
        };
    }
    int number;
};

/// Makes a loop current, as posted functions expect; the functions of these tests do not use it.
class current_loop_scope {
public:
    current_loop_scope() noexcept { coil::detail::current_loop = &loop(); }
    ~current_loop_scope() { coil::detail::current_loop = nullptr; }
    current_loop_scope(const current_loop_scope&) = delete;
    current_loop_scope& operator=(const current_loop_scope&) = delete;
    event_loop& loop() noexcept { return context_.loop(); }

private:
    coil::io_context context_{8};
};

/// Resumes everything that is ready; returns the number of resumptions.
int run(ready_queue& ready) {
    int turns = 0;
    while (ready.has_next()) {
        ready.pop().resume();
        ++turns;
    }
    return turns;
}

TEST(PostedFunctions, G7_AreCalledInOrderAFewInEachTurn) {
    const current_loop_scope scope;
    called.clear();
    ready_queue ready;
    posted_functions functions(ready);
    std::vector<function> many;
    constexpr int count = 2 * posted_functions::at_once + 1;
    for (int i = 0; i < count; ++i) {
        many.emplace_back(i);
    }
    for (function& f : many) {
        functions.push(f);
    }
    EXPECT_EQ(ready.size(), 1U); // one entry for any number of functions
    ready.pop().resume();
    EXPECT_EQ(called.size(), static_cast<std::size_t>(posted_functions::at_once));
    EXPECT_EQ(run(ready), 2);
    EXPECT_TRUE(functions.empty());
    ASSERT_EQ(called.size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(called[static_cast<std::size_t>(i)], i);
    }
}

TEST(PostedFunctions, AShutdownCallsAllOfThemAndTheNextRunNoneAgain) {
    current_loop_scope scope;
    called.clear();
    ready_queue ready;
    posted_functions functions(ready);
    function first(1);
    function second(2);
    function later(3);
    functions.push(first);
    functions.push(second);
    ready.clear();
    functions.lost_turn();
    functions.call_all(scope.loop());
    EXPECT_EQ(called, (std::vector{1, 2}));
    functions.push(later);
    EXPECT_EQ(run(ready), 1);
    EXPECT_EQ(called, (std::vector{1, 2, 3}));
}

} // namespace
