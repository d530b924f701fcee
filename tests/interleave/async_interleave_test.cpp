// async_interleave: what a task and its context see.

#include "interleave/support.hpp"
#include "support/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

using coil::async_interleave;
using coil::lookup;
using coil::prefetch;
using coil::task;

namespace {

using namespace interleave_test;
using namespace std::chrono_literals;

TEST(AsyncInterleave, FindsWhatInterleaveFinds) {
    const auto sorted = sorted_numbers(10'000, 1);
    const auto keys = random_keys(5'000, sorted.back() + 3, 2);
    const auto find = [&](std::uint32_t key) { return lower_bound(sorted, key); };
    std::vector<std::size_t> expected(keys.size());
    coil::interleave(16, keys, find, expected);
    coil::run([&]() -> task<> {
        std::vector<std::size_t> results(keys.size());
        EXPECT_EQ(co_await async_interleave(16, keys, find, results), keys.size());
        EXPECT_EQ(results, expected);
        std::vector<std::size_t> appended;
        auto all = keys;
        EXPECT_EQ(co_await async_interleave(16, std::move(all), find, std::back_inserter(appended)),
                  keys.size());
        EXPECT_EQ(appended, expected);
        std::ranges::fill(results, 0);
        co_await async_interleave(3, std::views::all(keys), find, std::span(results));
        EXPECT_EQ(results, expected);
        std::size_t ran = 0;
        co_await async_interleave(16, keys, [&](std::uint32_t) -> lookup<> {
            ++ran;
            co_return;
        });
        EXPECT_EQ(ran, keys.size());
    }());
}

/// A lookup of `steps` prefetches, with a little work in each.
lookup<int> busy(int steps) {
    volatile int work = 0;
    for (int i = 0; i < steps; ++i) {
        co_await prefetch(&steps);
        for (int k = 0; k < 20; ++k) {
            work = work + 1;
        }
    }
    co_return steps;
}

TEST(AsyncInterleave, LetsOtherCoroutinesRunEvery50Microseconds) {
    coil::run([]() -> task<> {
        bool over = false;
        std::vector<std::chrono::nanoseconds> gaps;
        auto other = coil::spawn([](bool& ended, auto& out) -> task<> {
            auto last = std::chrono::steady_clock::now();
            while (!ended) {
                co_await coil::yield();
                const auto now = std::chrono::steady_clock::now();
                out.push_back(now - last);
                last = now;
            }
        }(over, gaps));
        const std::vector<int> steps(2'000, 500);
        std::vector<int> results(steps.size());
        const auto begin = std::chrono::steady_clock::now();
        co_await async_interleave(16, steps, busy, results);
        const auto took = std::chrono::steady_clock::now() - begin;
        over = true;
        co_await std::move(other);
        EXPECT_EQ(results, steps);
        EXPECT_GT(took, 5ms);
        // The median: the machine may take the processor away at any time.
        std::ranges::nth_element(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2));
        const auto median = gaps[gaps.size() / 2];
        EXPECT_GE(median, 50us);
        EXPECT_LT(median, coil_test::sanitized ? 1000us : 100us);
    }());
}

TEST(AsyncInterleave, AStopDestroysTheLookups) {
    coil::run([]() -> task<> {
        int alive = 0;
        int ended = 0;
        const auto endless = [&](int) -> lookup<> {
            const counted here(alive);
            for (;;) {
                co_await prefetch(&alive);
            }
        };
        auto working = coil::spawn([](auto& f, int& caught) -> task<> {
            try {
                co_await async_interleave(16, std::views::iota(0), f);
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::operation_canceled);
                ++caught;
            }
        }(endless, ended));
        co_await coil::sleep_for(2ms);
        EXPECT_EQ(alive, 16);
        working.cancel();
        co_await std::move(working);
        EXPECT_EQ(ended, 1);
        EXPECT_EQ(alive, 0);
    }());
}

TEST(AsyncInterleave, AStoppedTaskStartsNoLookup) {
    coil::run([]() -> task<> {
        int ran = 0;
        coil::inplace_stop_source source;
        source.request_stop();
        const auto f = [&](int) -> lookup<> {
            ++ran;
            co_return;
        };
        const std::vector<int> keys(10);
        auto working = [](auto& k, auto& g) -> task<> { co_await async_interleave(4, k, g); };
        bool stopped = false;
        try {
            co_await coil::with_stop_token(working(keys, f), source.get_token());
        } catch (const std::system_error& e) {
            stopped = e.code() == std::errc::operation_canceled;
        }
        EXPECT_TRUE(stopped);
        EXPECT_EQ(ran, 0);
    }());
}

TEST(AsyncInterleave, ALimitEndsIt) {
    coil::run([]() -> task<> {
        const auto endless = [](int n) -> lookup<> {
            for (;;) {
                co_await prefetch(&n);
            }
        };
        const auto work = [&]() -> task<> {
            co_await async_interleave(4, std::views::iota(0), endless);
        };
        const auto begin = std::chrono::steady_clock::now();
        bool ended = false;
        try {
            co_await coil::timeout(work(), 5ms);
        } catch (const std::system_error& e) {
            ended = e.code() == std::errc::timed_out || e.code() == std::errc::operation_canceled;
        }
        EXPECT_TRUE(ended);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);
    }());
}

TEST(AsyncInterleave, AShutdownDestroysTheLookups) {
    int alive = 0;
    {
        coil::io_context context;
        context.co_spawn([](int& count) -> task<> {
            co_await async_interleave(8, std::views::iota(0), [&](int) -> lookup<> {
                const counted here(count);
                for (;;) {
                    co_await prefetch(&count);
                }
            });
        }(alive));
        context.co_spawn([](coil::io_context& c, const int& count) -> task<> {
            co_await coil::sleep_for(1ms);
            EXPECT_EQ(count, 8);
            c.stop();
        }(context, alive));
        context.run();
    }
    EXPECT_EQ(alive, 0);
}

TEST(AsyncInterleave, ExceptionsPropagate) {
    coil::run([]() -> task<> {
        int alive = 0;
        const auto f = [&](int n) -> lookup<int> {
            const counted here(alive);
            co_await prefetch(&n);
            if (n == 500) {
                throw std::runtime_error("500");
            }
            co_return n;
        };
        std::vector<int> before;
        bool caught = false;
        try {
            co_await async_interleave(8, std::views::iota(0, 1000), f, std::back_inserter(before));
        } catch (const std::runtime_error&) {
            caught = true;
        }
        EXPECT_TRUE(caught);
        EXPECT_EQ(alive, 0);
        EXPECT_TRUE(std::ranges::equal(before, std::views::iota(0, 500)));
    }());
}

TEST(AsyncInterleave, YieldsInASimulatedWorldAtTheSamePlacesForEverySeed) {
    std::vector<int> counts;
    for (int run = 0; run < 2; ++run) {
        coil::sim::world world(7);
        world.host("a").co_spawn([](std::vector<int>& out) -> task<> {
            bool over = false;
            int others = 0;
            auto other = coil::spawn([](bool& ended, int& count) -> task<> {
                while (!ended) {
                    ++count;
                    co_await coil::yield();
                }
            }(over, others));
            const std::vector<int> steps(2'000, 100);
            std::vector<int> results(steps.size());
            co_await async_interleave(16, steps, busy, results);
            over = true;
            co_await std::move(other);
            EXPECT_EQ(results, steps);
            out.push_back(others);
        }(counts));
        world.run();
    }
    ASSERT_EQ(counts.size(), 2U);
    EXPECT_EQ(counts[0], counts[1]);
    EXPECT_GE(counts[0], 3);
}

} // namespace
