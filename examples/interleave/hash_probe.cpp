// Lookups in a large hash table with chains, half of them for keys that the table contains: plain,
// and 16 at a time.
//
//     hash_probe [MIB [COUNT [WIDTH]]]

#include "hash_table.hpp"
#include "timing.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

int main(int argc, char** argv) {
    using entry = structures::hash_table::entry;
    const structures::options o = structures::options_of(argc, argv);
    const std::size_t size = std::bit_floor(o.bytes / (sizeof(entry) + sizeof(entry*)));
    std::vector<const entry*> buckets(size);
    std::vector<entry> entries(size);
    structures::hash_table table(buckets, entries);
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < size; ++i) {
        table.insert(random(), i + 1);
    }
    std::vector<std::uint64_t> keys(o.count);
    for (std::uint64_t& key : keys) {
        const std::uint64_t chance = random();
        key = chance % 2 == 0 ? chance : entries[chance % size].key;
    }
    return structures::compare(
        o, keys, [&](std::uint64_t key) { return table.value_of(key); },
        [&](std::uint64_t key) { return table.find_value(key); });
}
