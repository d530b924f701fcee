// Binary search in a sorted array: each halving is a cache miss that depends on the previous one.
#pragma once

#include <coil/interleave/lookup.hpp>
#include <coil/interleave/prefetch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace structures {

using sorted_array = std::span<const std::uint32_t>;

inline std::size_t position(sorted_array sorted, std::uint32_t key) {
    return static_cast<std::size_t>(std::ranges::lower_bound(sorted, key) - sorted.begin());
}

/// The elements that are left at the end lie in one or two cache lines.
inline constexpr std::size_t last_elements = 16;

/// The same search as a coil::lookup.
inline coil::lookup<std::size_t> find_position(sorted_array sorted, std::uint32_t key) {
    const std::uint32_t* first = sorted.data();
    std::size_t size = sorted.size();
    while (size > last_elements) {
        const std::size_t half = size / 2;
        co_await coil::prefetch(first + half);
        first = first[half] < key ? first + half : first;
        size -= half;
    }
    co_await coil::prefetch(first, first + size);
    first = std::lower_bound(first, first + size, key);
    co_return static_cast<std::size_t>(first - sorted.data());
}

} // namespace structures
