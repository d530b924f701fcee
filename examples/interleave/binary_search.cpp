// Binary searches in a large sorted array: std::lower_bound, and 16 lookups at a time.
//
//     binary_search [MIB [COUNT [WIDTH]]]

#include "sorted_array.hpp"
#include "timing.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

int main(int argc, char** argv) {
    const structures::options o = structures::options_of(argc, argv);
    std::vector<std::uint32_t> sorted(o.bytes / sizeof(std::uint32_t));
    const std::uint64_t scale = (std::uint64_t{1} << 32) / sorted.size();
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        sorted[i] = static_cast<std::uint32_t>(i * scale);
    }
    std::mt19937 random(1);
    std::vector<std::uint32_t> keys(o.count);
    for (std::uint32_t& key : keys) {
        key = static_cast<std::uint32_t>(random());
    }
    return structures::compare(
        o, keys, [&](std::uint32_t key) { return structures::position(sorted, key); },
        [&](std::uint32_t key) { return structures::find_position(sorted, key); });
}
