// Frames: their number and addresses, and that memory does not grow with the number of keys.

#include "interleave/support.hpp"
#include "support/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

using coil::interleave;
using coil::lookup;
using coil::prefetch;

namespace {

thread_local std::size_t allocations = 0;

} // namespace

#if !COIL_SANITIZED

// The other forms call these two.
void* operator new(std::size_t size) {
    ++allocations;
    void* const memory = std::malloc(size);
    return memory != nullptr ? memory : throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    ++allocations;
    const auto to = static_cast<std::size_t>(alignment);
    void* const memory = std::aligned_alloc(to, (size + to - 1) / to * to);
    return memory != nullptr ? memory : throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif

namespace {

using namespace interleave_test;

lookup<int> nested(int n) {
    co_await prefetch(&n);
    co_return n;
}

lookup<int> step(int n) {
    co_await prefetch(&n);
    co_return co_await nested(n) + 1;
}

TEST(InterleaveMemory, ACallAllocatesNothingAfterTheFirst) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer has its own operator new";
    }
    std::vector<int> results(100'000);
    const auto keys = std::views::iota(0, 100'000);
    interleave(16, keys, step, results);
    std::vector<int> ordered;
    ordered.reserve(results.size());
    interleave(16, keys, step, std::back_inserter(ordered));
    ordered.clear();
    const std::size_t before = allocations;
    interleave(16, keys, step, results);
    interleave(16, keys, step, std::back_inserter(ordered));
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(ordered, results);
}

TEST(InterleaveMemory, FramesReuseThePlacesOfOneBlock) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer checks each frame as an allocation of its own";
    }
    std::set<std::uintptr_t> places;
    const auto f = [&](int n) -> lookup<> {
        places.insert(reinterpret_cast<std::uintptr_t>(&n)); // n is in the frame
        co_await prefetch(&n);
    };
    interleave(8, std::views::iota(0, 1000), f);
    ASSERT_EQ(places.size(), 8U);
    const std::uintptr_t stride = (*places.rbegin() - *places.begin()) / 7;
    std::uintptr_t expected = *places.begin();
    for (const std::uintptr_t place : places) {
        EXPECT_EQ(place, expected);
        expected += stride;
    }
    EXPECT_EQ(stride % coil::detail::frame_alignment, 0U);
    EXPECT_LE(stride, 192U);
}

TEST(InterleaveMemory, FramesOfDifferentSizesAndAlignedLocalsWork) {
    struct alignas(64) line {
        int values[16];
    };
    const auto small = [](int n) -> lookup<int> {
        co_await prefetch(&n);
        co_return n;
    };
    const auto large = [](int n) -> lookup<int> {
        line lines[20] = {};
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&lines[0]) % 64, 0U);
        lines[n % 20].values[3] = n;
        co_await prefetch(&lines[0]);
        co_return lines[n % 20].values[3];
    };
    for (int first = 0; first < 2; ++first) { // the first lookup is small, then large
        const auto keys = std::views::iota(first, 100);
        std::vector<int> results;
        interleave(
            8, keys, [&](int n) { return n % 2 == 0 ? small(n) : large(n); },
            std::back_inserter(results));
        EXPECT_TRUE(std::ranges::equal(results, keys));
    }
}

TEST(InterleaveMemory, AFunctionMayCreateOtherLookups) {
    // The first lookup that the function creates is not the one that it returns.
    const auto f = [](int n) {
        auto inner = nested(n);
        [[maybe_unused]] const auto unused = nested(n);
        return
            [](lookup<int> l) -> lookup<int> { co_return co_await std::move(l); }(std::move(inner));
    };
    std::vector<int> results(100);
    interleave(8, std::views::iota(0, 100), f, results);
    EXPECT_TRUE(std::ranges::equal(results, std::views::iota(0, 100)));
}

TEST(InterleaveMemory, CallsMayBeNested) {
    const auto outer = [](int n) -> lookup<int> {
        co_await prefetch(&n);
        std::vector<int> inner(10);
        interleave(3, std::views::iota(n, n + 10), nested, inner);
        co_return inner[9];
    };
    const auto f = [&](int n) {
        std::vector<int> inner(10);
        interleave(3, std::views::iota(n, n + 10), nested, inner);
        return outer(inner[0]);
    };
    std::vector<int> results(50);
    interleave(4, std::views::iota(0, 50), f, results);
    EXPECT_TRUE(std::ranges::equal(results, std::views::iota(9, 59)));
}

#if !COIL_SANITIZED
TEST(InterleaveDeathTest, AKeptLookupEndsTheProgram) {
    std::optional<lookup<int>> kept;
    std::vector<int> results(1);
    EXPECT_DEATH(interleave(
                     1, std::vector{1},
                     [&](int n) {
                         kept.emplace(nested(n));
                         return nested(n);
                     },
                     results),
                 "kept beyond the call");
}
#endif

TEST(InterleaveMemory, G10_AMillionLookupsDoNotGrowTheStack) {
#if COIL_SANITIZED
    constexpr int count = 100'000;
#else
    constexpr int count = 1'000'000;
#endif
    std::uintptr_t lowest = ~std::uintptr_t{0};
    std::uintptr_t highest = 0;
    const auto look = [&] {
        const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        lowest = std::min(lowest, here);
        highest = std::max(highest, here);
    };
    const auto f = [&](int n) -> lookup<int> {
        look();
        if (n % 3 != 0) {
            co_await prefetch(&n);
            look();
        }
        if (n % 5 == 0) {
            co_return co_await nested(n);
        }
        co_return n;
    };
    std::vector<int> results(count);
    interleave(16, std::views::iota(0, count), f, results);
    EXPECT_TRUE(std::ranges::equal(results, std::views::iota(0, count)));
    EXPECT_LT(highest - lowest, 4096U);
}

} // namespace
