// Lookups in a data structure of a given size: plain, as coroutines that interleave() runs, and as
// a state machine by hand. Prints nanoseconds per lookup as JSON.
//
//     lookups STRUCTURE BYTES COUNT ROUNDS HUGE WIDTH...
//
// STRUCTURE is binary, hash, btree or chain. HUGE is 1 to ask for huge pages (madvise(2)) for all
// variants, or 0.

#include "state_machines.hpp"

#include <coil/interleave/interleave.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>

namespace {

struct settings {
    std::size_t bytes;
    std::size_t count;
    int rounds;
    bool huge;
    std::vector<std::size_t> widths;
};

double now_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

template <class T>
std::span<T> allocate(std::size_t count, bool huge) {
    constexpr std::size_t huge_page = 2 << 20;
    const std::size_t bytes = (count * sizeof(T) + huge_page - 1) / huge_page * huge_page;
    void* const memory = std::aligned_alloc(huge_page, bytes);
    if (memory == nullptr || madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0) {
        std::perror("memory");
        std::exit(1);
    }
    for (std::size_t i = 0; i < bytes; i += 4096) {
        static_cast<volatile char*>(memory)[i] = 0;
    }
    return {static_cast<T*>(memory), count};
}

/// Measures all variants in alternating rounds.
template <class Key, class Plain, class Find, class Machine>
int measure(const settings& s, const std::vector<Key>& keys, Plain plain, Find find,
            const Machine& machine) {
    std::vector<std::uint64_t> expected(keys.size());
    std::vector<std::uint64_t> results(keys.size());
    const std::size_t variants = 1 + 2 * s.widths.size();
    std::vector<std::vector<double>> ns(variants);
    for (int round = 0; round < s.rounds; ++round) {
        std::size_t variant = 0;
        const auto timed = [&](auto run) {
            const double begin = now_ns();
            run();
            ns[variant++].push_back((now_ns() - begin) / static_cast<double>(keys.size()));
        };
        const auto check = [&] {
            if (results != expected) {
                std::fprintf(stderr, "lookups: variant %zu finds something else\n", variant - 1);
                std::exit(1);
            }
            std::fill(results.begin(), results.end(), ~std::uint64_t{0});
        };
        timed([&] {
            for (std::size_t i = 0; i < keys.size(); ++i) {
                expected[i] = plain(keys[i]);
            }
        });
        for (const std::size_t width : s.widths) {
            timed([&] { by_hand::run(machine, width, std::span(keys), std::span(results)); });
            check();
            timed([&] { coil::interleave(width, keys, find, results); });
            check();
        }
    }
    std::size_t variant = 0;
    const auto print = [&](const char* before, const std::string& name) {
        std::printf("%s\"%s\":[", before, name.c_str());
        const char* comma = "";
        for (const double figure : ns[variant]) {
            std::printf("%s%.3f", comma, figure);
            comma = ",";
        }
        std::printf("]");
        ++variant;
    };
    print("{", "plain");
    for (const std::size_t width : s.widths) {
        print(",", "hand_" + std::to_string(width));
        print(",", "coil_" + std::to_string(width));
    }
    std::printf("}\n");
    return 0;
}

int binary_search(const settings& s) {
    const std::span<std::uint32_t> sorted =
        allocate<std::uint32_t>(s.bytes / sizeof(std::uint32_t), s.huge);
    const std::uint64_t scale = (std::uint64_t{1} << 32) / sorted.size();
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        sorted[i] = static_cast<std::uint32_t>(i * scale);
    }
    std::mt19937 random(1);
    std::vector<std::uint32_t> keys(s.count);
    for (std::uint32_t& key : keys) {
        key = static_cast<std::uint32_t>(random());
    }
    return measure(
        s, keys, [&](std::uint32_t key) { return structures::position(sorted, key); },
        [&](std::uint32_t key) { return structures::find_position(sorted, key); },
        by_hand::sorted_array{sorted});
}

/// The table contains half of the keys. The chains of the buckets have one entry on average.
int hash_probe(const settings& s) {
    using entry = structures::hash_table::entry;
    const std::size_t size = std::bit_floor(s.bytes / (sizeof(entry) + sizeof(entry*)));
    const std::span<const entry*> buckets = allocate<const entry*>(size, s.huge);
    structures::hash_table table(buckets, allocate<entry>(size, s.huge));
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> keys(s.count);
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t key = random();
        table.insert(key, i + 1);
        if (i < keys.size() / 2) {
            keys[i] = key;
        }
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] == 0) {
            keys[i] = random();
        }
    }
    std::shuffle(keys.begin(), keys.end(), random);
    return measure(
        s, keys, [&](std::uint64_t key) { return table.value_of(key); },
        [&](std::uint64_t key) { return table.find_value(key); }, by_hand::hash_table{table});
}

int b_tree(const settings& s) {
    using node = structures::b_tree::node;
    structures::b_tree tree(allocate<node>(s.bytes / sizeof(node), s.huge));
    const std::uint64_t scale =
        (std::uint64_t{1} << 32) / (tree.nodes().size() * structures::b_tree::keys_per_node);
    std::uint64_t last = 0;
    tree.fill([&] { return static_cast<std::uint32_t>(scale * last++); });
    std::mt19937 random(1);
    std::vector<std::uint32_t> keys(s.count);
    for (std::uint32_t& key : keys) {
        key = static_cast<std::uint32_t>(random());
    }
    return measure(
        s, keys, [&](std::uint32_t key) { return tree.least_from(key); },
        [&](std::uint32_t key) { return tree.find_least_from(key); }, by_hand::b_tree{tree});
}

int pointer_chase(const settings& s) {
    constexpr int hops = 8;
    const std::span<structures::link> links =
        allocate<structures::link>(s.bytes / sizeof(structures::link), s.huge);
    structures::link_randomly(links, 1);
    std::mt19937_64 random(1);
    std::vector<const structures::link*> keys(s.count);
    for (auto& key : keys) {
        key = &links[random() % links.size()];
    }
    return measure(
        s, keys, [&](const structures::link* from) { return structures::value_after(from, hops); },
        [&](const structures::link* from) { return structures::find_value_after(from, hops); },
        by_hand::chain{hops});
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 7) {
        std::fprintf(stderr,
                     "usage: lookups binary|hash|btree|chain BYTES COUNT ROUNDS HUGE WIDTH...\n");
        return 2;
    }
    settings s{.bytes = std::strtoull(argv[2], nullptr, 10),
               .count = std::strtoull(argv[3], nullptr, 10),
               .rounds = std::atoi(argv[4]),
               .huge = std::atoi(argv[5]) != 0,
               .widths = {}};
    for (int i = 6; i < argc; ++i) {
        s.widths.push_back(std::strtoull(argv[i], nullptr, 10));
    }
    const std::string_view structure = argv[1];
    if (structure == "binary") {
        return binary_search(s);
    }
    if (structure == "hash") {
        return hash_probe(s);
    }
    if (structure == "btree") {
        return b_tree(s);
    }
    if (structure == "chain") {
        return pointer_chase(s);
    }
    std::fprintf(stderr, "lookups: there is no structure '%s'\n", argv[1]);
    return 2;
}
