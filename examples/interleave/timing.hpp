// Runs lookups plainly and interleaved, compares the results, and prints the times.
#pragma once

#include <coil/interleave/interleave.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace structures {

struct options {
    std::size_t bytes;
    std::size_t count;
    std::size_t width;
};

/// PROGRAM [MIB [COUNT [WIDTH]]]
inline options options_of(int argc, char** argv) {
    const auto number = [&](int i, std::size_t otherwise) {
        return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
    };
    const options o{number(1, 256) << 20, number(2, 1'000'000),
                    number(3, coil::default_interleave_width)};
    if (argc > 4 || o.bytes == 0 || o.bytes >> 36 != 0 || o.count == 0 || o.width == 0) {
        std::fprintf(stderr, "usage: %s [MIB [COUNT [WIDTH]]]\n", argv[0]);
        std::exit(2);
    }
    return o;
}

/// Returns the exit status of the program.
template <class Key, class Plain, class Find>
int compare(const options& o, const std::vector<Key>& keys, Plain plain, Find find) {
    using clock = std::chrono::steady_clock;
    const auto per_key = [&](clock::duration d) {
        return std::chrono::duration<double, std::nano>(d).count() /
               static_cast<double>(keys.size());
    };
    std::vector<std::uint64_t> expected(keys.size());
    std::vector<std::uint64_t> results(keys.size());
    const auto begin = clock::now();
    for (std::size_t i = 0; i < keys.size(); ++i) {
        expected[i] = plain(keys[i]);
    }
    const auto between = clock::now();
    coil::interleave(o.width, keys, find, results);
    const auto end = clock::now();
    if (results != expected) {
        std::puts("the results differ");
        return 1;
    }
    std::printf("%zu lookups in %zu MiB, all results equal\n", keys.size(), o.bytes >> 20);
    std::printf("plain:            %8.1f ns each\n", per_key(between - begin));
    std::printf("interleaved, %3zu: %8.1f ns each\n", o.width, per_key(end - between));
    return 0;
}

} // namespace structures
