// Alternating rounds of several variants of the same work, and a table of their medians.
#pragma once

#include "usage.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rounds {

struct variant {
    std::string name;
    std::function<void(long operations)> work;
    std::vector<double> wall{}; // nanoseconds per operation
    std::vector<double> cpu{};
};

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// The number of operations: `usual`, a tenth of it after --quick.
inline long operations(int argc, char** argv, long usual) {
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--quick") {
            return usual / 10;
        }
    }
    return usual;
}

/// Runs each variant once to warm up and nine times alternately. Ratios are to the first variant;
/// CPU is that of this process, without the server.
inline void compare(const char* title, long operations, std::vector<variant> variants) {
    constexpr int count = 9;
    for (int round = -1; round < count; ++round) {
        for (variant& v : variants) {
            const double cpu = usage::cpu_seconds();
            const auto begin = std::chrono::steady_clock::now();
            v.work(operations);
            const std::chrono::duration<double, std::nano> wall =
                std::chrono::steady_clock::now() - begin;
            if (round >= 0) {
                const auto n = static_cast<double>(operations);
                v.wall.push_back(wall.count() / n);
                v.cpu.push_back((usage::cpu_seconds() - cpu) * 1e9 / n);
            }
        }
    }
    std::printf("%s, %ld operations, median of %d rounds\n", title, operations, count);
    std::printf("  %-40s %12s %12s %7s %7s\n", "", "wall ns/op", "CPU ns/op", "x wall", "x CPU");
    for (const variant& v : variants) {
        std::printf("  %-40s %12.0f %12.0f %7.2f %7.2f\n", v.name.c_str(), median(v.wall),
                    median(v.cpu), median(v.wall) / median(variants[0].wall),
                    median(v.cpu) / median(variants[0].cpu));
    }
}

} // namespace rounds
