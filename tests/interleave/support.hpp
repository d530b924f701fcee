#pragma once

#include <coil/coil.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace interleave_test {

/// Sorted, with gaps and duplicates.
inline std::vector<std::uint32_t> sorted_numbers(std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> numbers(count);
    std::uint32_t last = 0;
    for (std::uint32_t& n : numbers) {
        last += random() % 4;
        n = last;
    }
    return numbers;
}

inline std::vector<std::uint32_t> random_keys(std::size_t count, std::uint32_t below,
                                              std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> keys(count);
    for (std::uint32_t& key : keys) {
        key = random() % below;
    }
    return keys;
}

inline coil::lookup<std::size_t> lower_bound(const std::vector<std::uint32_t>& sorted,
                                             std::uint32_t key) {
    std::size_t first = 0;
    std::size_t size = sorted.size();
    while (size > 0) {
        const std::size_t half = size / 2;
        co_await coil::prefetch(&sorted[first + half]);
        if (sorted[first + half] < key) {
            first += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    co_return first;
}

/// Counts its instances.
class counted {
public:
    explicit counted(int& alive) noexcept : alive_(&alive) { ++alive; }
    counted(const counted& other) noexcept : alive_(other.alive_) { ++*alive_; }
    counted& operator=(const counted&) = delete;
    ~counted() { --*alive_; }

private:
    int* alive_;
};

} // namespace interleave_test
