// Lookups that await lookups, exceptions, and the destruction of unfinished lookups.

#include "interleave/support.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using coil::interleave;
using coil::lookup;
using coil::prefetch;

namespace {

using namespace interleave_test;

lookup<int> leaf(int n) {
    co_await prefetch(&n);
    if (n == 13) {
        throw std::runtime_error("13");
    }
    co_return n;
}

lookup<std::unique_ptr<int>> boxed(int n) { co_return std::make_unique<int>(co_await leaf(n)); }

lookup<> nothing(int& sum, int n) { sum += co_await leaf(n); }

lookup<int> sum_of(int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        if (i != 13) {
            sum += *co_await boxed(i);
        }
    }
    co_await nothing(sum, 100);
    auto last = leaf(1); // created before it is awaited
    co_await prefetch(&sum);
    co_return sum + co_await std::move(last);
}

TEST(NestedLookup, ReturnsItsResultToTheLookupThatAwaitsIt) {
    const auto keys = std::views::iota(0, 40);
    std::vector<int> results(40);
    interleave(6, keys, sum_of, results);
    for (int n = 0; n < 40; ++n) {
        EXPECT_EQ(results[static_cast<std::size_t>(n)], n * (n - 1) / 2 + 101 - (n > 13 ? 13 : 0));
    }
}

TEST(NestedLookup, ItsExceptionPropagatesFromTheAwait) {
    const auto f = [](int n) -> lookup<std::string> {
        try {
            co_return std::to_string(*co_await boxed(n));
        } catch (const std::runtime_error& e) {
            co_return std::string("caught ") + e.what();
        }
    };
    std::vector<std::string> results(3);
    interleave(2, std::vector{12, 13, 14}, f, results);
    EXPECT_EQ(results, (std::vector<std::string>{"12", "caught 13", "14"}));
}

TEST(NestedLookup, OneThatIsNotAwaitedIsDestroyedWithoutHavingRun) {
    int alive = 0;
    int ran = 0;
    const auto inner = [&](counted) -> lookup<> {
        ++ran;
        co_return;
    };
    const auto f = [&](int) -> lookup<> {
        [[maybe_unused]] const auto unused = inner(counted(alive));
        co_await prefetch(&alive);
        EXPECT_GT(alive, 0);
    };
    interleave(2, std::vector{1, 2, 3}, f);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(alive, 0);
}

lookup<int> descend(int depth, int& alive) {
    const counted here(alive);
    co_await prefetch(&depth);
    if (depth == 0) {
        co_return 0;
    }
    co_return 1 + co_await descend(depth - 1, alive);
}

#if COIL_SANITIZED
constexpr int depth = 50'000;
#else
constexpr int depth = 1'000'000;
#endif

TEST(NestedLookup, G10_ANestDoesNotGrowTheStack) {
    int alive = 0;
    std::vector<int> results(2);
    interleave(2, std::vector{depth, 10}, [&](int n) { return descend(n, alive); }, results);
    EXPECT_EQ(results, (std::vector{depth, 10}));
    EXPECT_EQ(alive, 0);
}

TEST(NestedLookup, G10_DestroyingANestDoesNotGrowTheStack) {
    int alive = 0;
    int most = 0;
    const auto f = [&](int n) -> lookup<int> {
        if (n != 0) {
            co_return co_await descend(n, alive);
        }
        for (int i = 0; i < depth; ++i) {
            co_await prefetch(&n);
        }
        most = alive;
        throw std::runtime_error("at full depth");
    };
    std::vector<int> results(2);
    EXPECT_THROW(interleave(2, std::vector{2 * depth, 0}, f, results), std::runtime_error);
    EXPECT_GT(most, depth / 4);
    EXPECT_EQ(alive, 0);
}

TEST(NestedLookup, AnExceptionCrossesEveryLevel) {
    int alive = 0;
    const auto down = [&](auto& self, int n) -> lookup<int> {
        const counted here(alive);
        co_await prefetch(&n);
        if (n == 0) {
            throw std::runtime_error("bottom");
        }
        co_return co_await self(self, n - 1);
    };
    std::vector<int> results(1);
    EXPECT_THROW(interleave(
                     1, std::vector{100}, [&](int n) { return down(down, n); }, results),
                 std::runtime_error);
    EXPECT_EQ(alive, 0);
}

// ---- exceptions

TEST(InterleaveExceptions, PropagateFromEveryPositionAfterTheOthersWereDestroyed) {
    constexpr int count = 30;
    const auto keys = std::views::iota(0, count);
    for (int steps = 0; steps <= 2; ++steps) {
        for (int bad = 0; bad < count; ++bad) {
            for (const std::size_t width : {1U, 4U, 64U}) {
                int alive = 0;
                const auto f = [&](int n) -> lookup<int> {
                    const counted here(alive);
                    for (int i = 0; i < (n == bad ? steps : 2); ++i) {
                        co_await prefetch(&n);
                    }
                    if (n == bad) {
                        throw std::out_of_range(std::to_string(n));
                    }
                    co_return n;
                };
                const auto thrown_by = [&](auto call) {
                    try {
                        call();
                        return std::string("nothing");
                    } catch (const std::out_of_range& e) {
                        EXPECT_EQ(alive, 0);
                        return std::string(e.what());
                    }
                };
                const std::string expected = std::to_string(bad);
                std::vector<int> results(count);
                EXPECT_EQ(thrown_by([&] { interleave(width, keys, f, results); }), expected);
                std::vector<int> before;
                EXPECT_EQ(
                    thrown_by([&] { interleave(width, keys, f, std::back_inserter(before)); }),
                    expected);
                EXPECT_EQ(before.size(), static_cast<std::size_t>(bad));
                before.clear();
                EXPECT_EQ(thrown_by([&] {
                              for (const int n : coil::interleaved(width, keys, f)) {
                                  before.push_back(n);
                              }
                          }),
                          expected);
                EXPECT_EQ(before.size(), static_cast<std::size_t>(bad));
                EXPECT_EQ(thrown_by([&] {
                              coil::interleave_unordered(width, keys, f, [](std::size_t, int) {});
                          }),
                          expected);
            }
        }
    }
}

TEST(InterleaveExceptions, OfTheFunctionTheRangeAndTheOutput) {
    int alive = 0;
    const auto f = [&](int n) -> lookup<int> {
        const counted here(alive);
        co_await prefetch(&n);
        co_await prefetch(&n);
        co_return n;
    };
    const auto keys = std::views::iota(0, 20);
    std::vector<int> results(20);
    for (int bad = 0; bad < 20; ++bad) {
        const auto throws_at = [bad](int n) {
            if (n == bad) {
                throw std::runtime_error("bad");
            }
            return n;
        };
        EXPECT_THROW(interleave(
                         4, keys, [&](int n) { return f(throws_at(n)); }, results),
                     std::runtime_error);
        EXPECT_EQ(alive, 0);
        EXPECT_THROW(interleave(4, keys | std::views::transform(throws_at), f, results),
                     std::runtime_error);
        EXPECT_EQ(alive, 0);
        EXPECT_THROW(
            coil::interleave_unordered(4, keys, f, [&](std::size_t, int n) { throws_at(n); }),
            std::runtime_error);
        EXPECT_EQ(alive, 0);
    }
}

TEST(InterleaveExceptions, OfADestructorAfterCoReturn) {
    struct throws_late {
        ~throws_late() noexcept(false) { throw std::runtime_error("late"); }
    };
    int alive = 0;
    const auto f = [&](int) -> lookup<std::shared_ptr<counted>> {
        const throws_late last;
        co_return std::make_shared<counted>(alive);
    };
    std::vector<std::shared_ptr<counted>> results(1);
    EXPECT_THROW(interleave(1, std::vector{1}, f, results), std::runtime_error);
    EXPECT_EQ(alive, 0);
}

} // namespace
