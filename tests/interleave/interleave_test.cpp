// interleave: order, kinds of keys, outputs and results.

#include "interleave/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <numeric>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using coil::interleave;
using coil::interleave_unordered;
using coil::lookup;
using coil::prefetch;

namespace {

using namespace interleave_test;

std::vector<std::size_t> plainly(const std::vector<std::uint32_t>& sorted,
                                 const std::vector<std::uint32_t>& keys) {
    std::vector<std::size_t> results;
    for (const std::uint32_t key : keys) {
        results.push_back(static_cast<std::size_t>(
            std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin()));
    }
    return results;
}

TEST(Interleave, FindsWhatThePlainAlgorithmFinds) {
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        const auto sorted = sorted_numbers(seed * 321, seed);
        const auto find = [&](std::uint32_t key) { return lower_bound(sorted, key); };
        for (std::size_t width = 1; width <= 64; ++width) {
            const auto keys = random_keys(width * seed % 150, sorted.back() + 3, seed);
            const auto expected = plainly(sorted, keys);
            std::vector<std::size_t> results(keys.size());
            EXPECT_EQ(interleave(width, keys, find, results), keys.size());
            EXPECT_EQ(results, expected);

            std::vector<std::size_t> appended;
            EXPECT_EQ(interleave(width, keys, find, std::back_inserter(appended)), keys.size());
            EXPECT_EQ(appended, expected);

            std::vector<std::size_t> arrived(keys.size());
            interleave_unordered(width, keys, find,
                                 [&](std::size_t i, std::size_t found) { arrived[i] = found; });
            EXPECT_EQ(arrived, expected);

            std::vector<std::size_t> iterated;
            for (const std::size_t found : coil::interleaved(width, keys, find)) {
                iterated.push_back(found);
            }
            EXPECT_EQ(iterated, expected);
        }
    }
}

TEST(Interleave, TakesAWidthAboveTheNumberOfKeysAndZero) {
    const auto sorted = sorted_numbers(100, 1);
    const auto keys = random_keys(5, 100, 1);
    const auto find = [&](std::uint32_t key) { return lower_bound(sorted, key); };
    for (const std::size_t width : {std::size_t{0}, std::size_t{1000}, ~std::size_t{0}}) {
        std::vector<std::size_t> results(keys.size());
        EXPECT_EQ(interleave(width, keys, find, results), 5U);
        EXPECT_EQ(results, plainly(sorted, keys));
    }
}

TEST(Interleave, CallsNothingWithoutKeys) {
    const std::vector<int> none;
    std::vector<int> results;
    const auto never = [](int) -> lookup<int> {
        ADD_FAILURE();
        co_return 1;
    };
    EXPECT_EQ(interleave(16, none, never, results), 0U);
    EXPECT_EQ(interleave(16, none, never, std::back_inserter(results)), 0U);
    EXPECT_EQ(interleave(16, std::views::empty<int>, never, results), 0U);
    std::istringstream nothing("");
    EXPECT_EQ(interleave(16, std::views::istream<int>(nothing), never, results.begin()), 0U);
    EXPECT_EQ(std::ranges::distance(coil::interleaved(16, none, never)), 0);
    EXPECT_TRUE(results.empty());
}

/// Ends after `steps` prefetches.
lookup<int> after(int steps) {
    for (int i = 0; i < steps; ++i) {
        co_await prefetch(&steps);
    }
    co_return steps;
}

TEST(Interleave, RunsExactlyWidthLookupsAtATime) {
    int running = 0;
    int most = 0;
    const auto count = [&](int steps) -> lookup<> {
        most = std::max(most, ++running);
        for (int i = 0; i < steps; ++i) {
            co_await prefetch(&steps);
        }
        --running;
    };
    interleave(7, random_keys(200, 20, 3), count);
    EXPECT_EQ(most, 7);
    EXPECT_EQ(running, 0);
}

TEST(Interleave, ASlotTakesTheNextKeyAtOnce) {
    // Two slots: while one runs the long lookup, the other runs all the rest.
    std::vector<int> order;
    interleave_unordered(2, std::vector{50, 1, 1, 1, 1, 1, 1, 1, 1, 1}, after,
                         [&](std::size_t index, int) { order.push_back(static_cast<int>(index)); });
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 0}));
}

TEST(Interleave, ALookupWithoutPrefetchEndsWhenItStarts) {
    std::vector<int> steps(10'000, 0);
    std::vector<int> results(steps.size(), -1);
    EXPECT_EQ(interleave(3, steps, after, results), steps.size());
    EXPECT_EQ(results, steps);
}

TEST(Interleave, OneSlowLookupDelaysOrderedResultsOnlyWithinTheWindow) {
    // The first is slow: the others run ahead, until 4 results per slot wait for it.
    std::vector<int> steps(1000, 1);
    steps[0] = 10'000;
    int started = 0;
    std::size_t ahead = 0;
    const auto f = [&](int n) {
        ++started;
        return after(n);
    };
    std::vector<int> results;
    for (const int n : coil::interleaved(8, steps, f)) {
        if (results.empty()) {
            ahead = static_cast<std::size_t>(started);
        }
        results.push_back(n);
    }
    EXPECT_EQ(results, steps);
    EXPECT_EQ(ahead, 32U);
    results.clear();
    interleave(8, steps, after, std::back_inserter(results));
    EXPECT_EQ(results, steps);
}

TEST(Interleave, TheRangeComputesNoMoreThanItMust) {
    int started = 0;
    const auto f = [&](int n) {
        ++started;
        return after(n);
    };
    {
        auto results = coil::interleaved(4, std::views::iota(0), f);
        EXPECT_EQ(started, 0);
        auto it = results.begin();
        EXPECT_EQ(*it, 0);
        ++it;
        EXPECT_EQ(*it, 1);
    } // destroys the lookups in progress
    EXPECT_LE(started, 16);
}

TEST(Interleave, TheRangeIsAViewThatKeepsTemporaryKeys) {
    auto doubled = [] {
        return coil::interleaved(4, std::vector{1, 2, 3}, after) |
               std::views::transform([](int n) { return 2 * n; });
    }();
    std::vector<int> results;
    for (const int n : doubled) {
        results.push_back(n);
    }
    EXPECT_EQ(results, (std::vector{2, 4, 6}));
}

// ---- keys

lookup<std::string> echo(const std::string& text) {
    co_await prefetch(text.data());
    co_await prefetch(text.data());
    co_return text;
}

TEST(Interleave, AKeyLivesUntilItsLookupHasEnded) {
    const auto texts = std::views::iota(0, 100) | std::views::transform([](int i) {
                           return "a text that needs memory of its own: " + std::to_string(i);
                       });
    std::vector<std::string> results;
    interleave(8, texts, echo, std::back_inserter(results));
    ASSERT_EQ(results.size(), 100U);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(results[static_cast<std::size_t>(i)], texts[i]);
    }
}

TEST(Interleave, KeysOfAnInputRangeAreKept) {
    std::istringstream input("the range has one element that every step overwrites");
    std::vector<std::string> results;
    interleave(3, std::views::istream<std::string>(input), echo, std::back_inserter(results));
    EXPECT_EQ(results, (std::vector<std::string>{"the", "range", "has", "one", "element", "that",
                                                 "every", "step", "overwrites"}));
}

TEST(Interleave, KeysOfAForwardRangeArePassedByReference) {
    std::list<std::unique_ptr<int>> keys; // cannot be copied
    for (int i = 0; i < 20; ++i) {
        keys.push_back(std::make_unique<int>(i));
    }
    const auto take = [](std::unique_ptr<int>& key) -> lookup<std::unique_ptr<int>> {
        co_await prefetch(key.get());
        co_return std::move(key);
    };
    std::vector<std::unique_ptr<int>> results(20);
    interleave(6, keys, take, results);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(*results[static_cast<std::size_t>(i)], i);
    }
    EXPECT_TRUE(std::ranges::all_of(keys, [](const auto& key) { return key == nullptr; }));
}

TEST(Interleave, MoveOnlyKeysMoveIntoTheLookup) {
    const auto keys = std::views::iota(0, 20) |
                      std::views::transform([](int i) { return std::make_unique<int>(i); });
    const auto read = [](std::unique_ptr<int> key) -> lookup<int> {
        co_await prefetch(key.get());
        co_return *key;
    };
    std::vector<int> results(20);
    interleave(6, keys, read, results);
    EXPECT_TRUE(std::ranges::equal(results, std::views::iota(0, 20)));
}

// ---- results

struct no_default {
    explicit no_default(int n) : value(n) {}
    int value;
};

TEST(Interleave, ResultsMayBeMoveOnlyOrNotDefaultConstructible) {
    const auto box = [](int n) -> lookup<std::unique_ptr<no_default>> {
        co_await prefetch(nullptr);
        co_return std::make_unique<no_default>(n);
    };
    const auto plain = [](int n) -> lookup<no_default> {
        co_await prefetch(nullptr);
        co_return no_default(n);
    };
    const auto keys = std::views::iota(0, 50);
    std::vector<std::unique_ptr<no_default>> boxes(50);
    interleave(5, keys, box, boxes);
    std::vector<no_default> values;
    interleave(5, keys, plain, std::back_inserter(values));
    int next = 0;
    for (auto&& b : coil::interleaved(5, keys, box)) {
        const std::unique_ptr<no_default> mine = std::move(b);
        const auto i = static_cast<std::size_t>(next++);
        EXPECT_EQ(mine->value, static_cast<int>(i));
        EXPECT_EQ(boxes[i]->value, static_cast<int>(i));
        EXPECT_EQ(values[i].value, static_cast<int>(i));
    }
    EXPECT_EQ(next, 50);
}

TEST(Interleave, ResultsMayBeReferences) {
    std::vector<int> numbers(30);
    const auto find = [&](std::size_t i) -> lookup<int&> {
        co_await prefetch(&numbers[i]);
        co_return numbers[i];
    };
    const auto keys = std::views::iota(std::size_t{0}, numbers.size());
    int next = 0;
    for (int& n : coil::interleaved(4, keys, find)) {
        n = next++;
    }
    interleave_unordered(4, keys, find, [](std::size_t i, int& n) {
        EXPECT_EQ(n, static_cast<int>(i));
        n *= 2;
    });
    std::vector<int> copies(30);
    interleave(4, keys, find, std::span(copies));
    EXPECT_EQ(copies, numbers);
    EXPECT_EQ(copies[29], 58);
}

TEST(Interleave, LookupsMayReturnVoid) {
    std::vector<int> counts(100);
    const auto add = [&](std::size_t i) -> lookup<> {
        co_await coil::prefetch_for_write(&counts[i]);
        ++counts[i];
    };
    const auto keys = std::views::iota(std::size_t{0}, counts.size());
    EXPECT_EQ(interleave(9, keys, add), 100U);
    std::size_t ended = 0;
    interleave_unordered(9, keys, add, [&](std::size_t) { ++ended; });
    EXPECT_EQ(ended, 100U);
    EXPECT_EQ(counts, std::vector<int>(100, 2));
}

TEST(Interleave, WritesToWhatIsAssignable) {
    const std::vector keys{3, 1, 2};
    int array[3] = {};
    interleave(2, keys, after, array);
    EXPECT_TRUE(std::ranges::equal(array, keys));
    std::vector<int> numbers(3);
    interleave(2, keys, after, numbers.begin());
    EXPECT_EQ(numbers, keys);
    int* const pointer = array;
    interleave(2, std::views::reverse(keys), after, pointer);
    EXPECT_TRUE(std::ranges::equal(array, std::vector{2, 1, 3}));
    std::vector<bool> odd(3);
    interleave(2, keys, [](int n) -> lookup<bool> { co_return n % 2 != 0; }, odd);
    EXPECT_EQ(odd, (std::vector<bool>{true, true, false}));
    std::ostringstream text;
    interleave(2, keys, after, std::ostream_iterator<int>(text, ","));
    EXPECT_EQ(text.str(), "3,1,2,");
    std::list<int> list(3);
    interleave(2, keys, after, list.begin());
    EXPECT_TRUE(std::ranges::equal(list, keys));
}

TEST(InterleaveDeathTest, ARangeThatIsTooShortEndsTheProgram) {
    std::vector<int> results(2);
    EXPECT_DEATH(interleave(2, std::vector{1, 1, 1}, after, results),
                 "fewer elements than there are keys");
}

// ---- prefetch

TEST(Prefetch, TakesAnyAddressesAndSizes) {
    struct big {
        char bytes[1000];
    };
    const auto memory = std::make_unique<big>();
    int steps = 0;
    const auto f = [&](int) -> lookup<> {
        co_await prefetch(nullptr);
        co_await prefetch(memory.get());
        co_await prefetch(memory.get(), sizeof(big));
        co_await prefetch(memory.get(), 0);
        co_await prefetch(memory->bytes + 1, memory->bytes + 100, static_cast<void*>(&steps));
        co_await prefetch(reinterpret_cast<void*>(~std::uintptr_t{0} - 10), 1000);
        co_await coil::prefetch_for_write(memory.get());
        co_await coil::prefetch_for_write(memory.get(), sizeof(big));
        ++steps;
    };
    interleave(2, std::vector{1, 2, 3}, f);
    EXPECT_EQ(steps, 3);
}

} // namespace
