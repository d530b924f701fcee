// generator: ranges computed by a coroutine.

#include <coil/core/generator.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using coil::elements_of;
using coil::generator;

namespace {

generator<int> count_to(int last) {
    for (int i = 1; i <= last; ++i) {
        co_yield i;
    }
}

TEST(Generator, IsAnInputRangeAndAView) {
    static_assert(std::ranges::input_range<generator<int>>);
    static_assert(!std::ranges::forward_range<generator<int>>);
    static_assert(std::ranges::view<generator<int>>);
    static_assert(std::is_same_v<std::ranges::range_value_t<generator<int>>, int>);
    static_assert(std::is_same_v<std::ranges::range_reference_t<generator<int>>, int&&>);
    static_assert(
        std::is_same_v<std::ranges::range_reference_t<generator<const int&>>, const int&>);
    static_assert(
        std::is_same_v<std::ranges::range_value_t<generator<std::string_view, std::string>>,
                       std::string>);
    static_assert(!std::is_copy_constructible_v<generator<int>>);
}

TEST(Generator, Values) {
    std::vector<int> seen;
    for (const int i : count_to(3)) {
        seen.push_back(i);
    }
    EXPECT_EQ(seen, (std::vector{1, 2, 3}));
    for ([[maybe_unused]] const int i : count_to(0)) {
        ADD_FAILURE();
    }
}

TEST(Generator, NothingRunsBeforeItIsIteratedOver) {
    bool ran = false;
    auto runs = [](bool& flag) -> generator<int> {
        flag = true;
        co_yield 1;
    };
    {
        [[maybe_unused]] const auto unused = runs(ran);
    }
    EXPECT_FALSE(ran);
    auto used = runs(ran);
    EXPECT_EQ(*used.begin(), 1);
    EXPECT_TRUE(ran);
}

TEST(Generator, WithViews) {
    auto even = [](int i) { return i % 2 == 0; };
    auto square = [](int i) { return i * i; };
    std::vector<int> seen;
    for (const int i : count_to(100) | std::views::filter(even) | std::views::transform(square) |
                           std::views::take(3)) {
        seen.push_back(i);
    }
    EXPECT_EQ(seen, (std::vector{4, 16, 36}));
}

TEST(Generator, AnInfiniteOneIsDestroyedWhileSuspended) {
    int destroyed = 0;
    struct guard {
        explicit guard(int& n) : count(n) {}
        ~guard() { ++count; }
        int& count;
    };
    auto unbounded = [](int& n) -> generator<int> {
        const guard local(n);
        for (int i = 0;; ++i) {
            co_yield i;
        }
    };
    for (const int i : unbounded(destroyed)) {
        if (i == 1000) {
            break;
        }
    }
    EXPECT_EQ(destroyed, 1);
}

TEST(Generator, References) {
    std::vector<int> numbers{1, 2, 3};
    auto each = [](std::vector<int>& all) -> generator<int&> {
        for (int& n : all) {
            co_yield n;
        }
    };
    for (int& n : each(numbers)) {
        n *= 10;
    }
    EXPECT_EQ(numbers, (std::vector{10, 20, 30}));
}

TEST(Generator, MoveOnlyElementsAndCopiesOfNamedOnes) {
    auto owners = []() -> generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(1);
        auto named = std::make_unique<int>(2);
        co_yield std::move(named);
    };
    std::vector<std::unique_ptr<int>> all;
    for (auto&& owner : owners()) {
        all.push_back(std::move(owner));
    }
    EXPECT_EQ(*all.at(1), 2);

    auto texts = []() -> generator<std::string> {
        const std::string named = "named, and longer than what fits inside";
        co_yield named;
        EXPECT_EQ(named.size(), 39U); // only the copy was moved from
    };
    for (std::string&& text : texts()) {
        const std::string taken = std::move(text);
        EXPECT_EQ(taken.size(), 39U);
    }
}

TEST(Generator, G12_BeginAndIncrementThrowExceptions) {
    auto throws = [](int after) -> generator<int> {
        for (int i = 0; i < after; ++i) {
            co_yield i;
        }
        throw std::runtime_error("enough");
    };
    auto none = throws(0);
    EXPECT_THROW(none.begin(), std::runtime_error);
    auto one = throws(1);
    auto at = one.begin();
    EXPECT_EQ(*at, 0);
    EXPECT_THROW(++at, std::runtime_error);
    EXPECT_EQ(at, std::default_sentinel);
}

struct node {
    int value;
    std::unique_ptr<node> left{};
    std::unique_ptr<node> right{};
};

generator<const int&> in_order(const node* n) {
    if (n != nullptr) {
        co_yield elements_of(in_order(n->left.get()));
        co_yield n->value;
        co_yield elements_of(in_order(n->right.get()));
    }
}

TEST(Generator, ElementsOf) {
    auto leaf = [](int value) { return std::make_unique<node>(node{value}); };
    const node tree{3, std::make_unique<node>(node{2, leaf(1)}),
                    std::make_unique<node>(node{5, leaf(4), leaf(6)})};
    std::vector<int> seen;
    std::ranges::copy(in_order(&tree), std::back_inserter(seen));
    EXPECT_EQ(seen, (std::vector{1, 2, 3, 4, 5, 6}));

    auto mixed = []() -> generator<const int&> {
        const std::vector<int> some{1, 2};
        co_yield elements_of(some);
        co_yield elements_of(std::vector{3, 4});
        co_yield elements_of(std::views::iota(5, 7));
        co_yield 7;
    };
    seen.clear();
    std::ranges::copy(mixed(), std::back_inserter(seen));
    EXPECT_EQ(seen, (std::vector{1, 2, 3, 4, 5, 6, 7}));
}

TEST(Generator, G12_ExceptionsCrossNestedOnes) {
    auto throws = []() -> generator<int> {
        co_yield 1;
        throw std::runtime_error("inside");
    };
    auto outer = [](auto f) -> generator<int> {
        try {
            co_yield elements_of(f());
            ADD_FAILURE() << "the coroutine was resumed";
        } catch (const std::runtime_error&) {
        }
        co_yield 2;
        co_yield elements_of(f());
    };
    std::vector<int> seen;
    EXPECT_THROW(for (const int i : outer(throws)) { seen.push_back(i); }, std::runtime_error);
    EXPECT_EQ(seen, (std::vector{1, 2, 1}));
}

generator<int> deep(int depth) {
    if (depth > 0) {
        co_yield elements_of(deep(depth - 1));
    }
    co_yield depth;
}

TEST(Generator, G10_NestingDoesNotGrowTheStack) {
    int sum = 0;
    for (const int i : deep(10'000)) {
        sum += i;
    }
    EXPECT_EQ(sum, 50'005'000);
    auto empty = [](int) -> generator<int> { co_return; };
    auto many = [](auto f) -> generator<int> {
        for (int i = 0; i < 1'000'000; ++i) {
            co_yield elements_of(f(i));
        }
        co_yield 1;
    };
    EXPECT_EQ(*many(empty).begin(), 1);
}

TEST(Generator, MovedWhileItIsIteratedOver) {
    auto first = count_to(3);
    auto at = first.begin();
    auto second = std::move(first);
    EXPECT_EQ(*at, 1);
    ++at;
    EXPECT_EQ(*at, 2);
    second = count_to(5);
    EXPECT_EQ(*second.begin(), 1);
}

TEST(GeneratorDeathTest, IteratingOverAMovedOneEndsTheProgram) {
    auto first = count_to(3);
    const auto second = std::move(first);
    // NOLINTNEXTLINE(bugprone-use-after-move)
    EXPECT_DEATH(first.begin(), "coil: begin.. of a generator that was moved from");
}

} // namespace
