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
#include <utility>
#include <vector>

namespace rounds {

struct variant {
    std::string name;
    std::function<void(long operations)> work;
    std::vector<double> wall{}; // nanoseconds per operation
    std::vector<double> cpu{};
};

/// How often compare() runs each variant.
inline int count = 9;
/// Where compare() appends what it has measured, one JSON object per line, or null.
inline std::FILE* rounds_file = nullptr;
/// compare() runs only variants of which `TITLE: NAME` contains this, for a profiler.
inline std::string_view only;

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// The number of operations: `usual`, or a tenth of it with --quick. Also reads `--rounds N`,
/// `--rounds-to FILE` and `--only TEXT`.
inline long operations(int argc, char** argv, long usual) {
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--quick") {
            usual /= 10;
        } else if (std::string_view(argv[i]) == "--rounds-to" && i + 1 < argc &&
                   rounds_file == nullptr) {
            rounds_file = std::fopen(argv[i + 1], "a");
        } else if (std::string_view(argv[i]) == "--rounds" && i + 1 < argc) {
            count = std::max(1, std::atoi(argv[i + 1]));
        } else if (std::string_view(argv[i]) == "--only" && i + 1 < argc) {
            only = argv[i + 1];
        }
    }
    return usual;
}

struct reading {
    std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
    double cpu = usage::cpu_seconds();
};
inline reading begin;

/// Called by a variant after preparations that do not count: restarts the measurement.
inline void prepared() { begin = {}; }

/// The titles and names have no characters that JSON would have to escape.
inline void write(const char* title, const std::vector<variant>& variants) {
    for (const variant& v : variants) {
        std::fprintf(rounds_file, "{\"title\":\"%s\",\"variant\":\"%s\"", title, v.name.c_str());
        for (const auto& [name, values] : {std::pair("wall", &v.wall), std::pair("cpu", &v.cpu)}) {
            const char* separator = "";
            std::fprintf(rounds_file, ",\"%s\":[", name);
            for (const double ns : *values) {
                std::fprintf(rounds_file, "%s%.1f", separator, ns);
                separator = ",";
            }
            std::fputc(']', rounds_file);
        }
        std::fputs("}\n", rounds_file);
    }
    std::fflush(rounds_file);
}

/// Runs each variant once to warm up, then all variants alternately, `count` times each. Ratios are
/// relative to the first variant; CPU is that of this process, without the server.
inline void compare(const char* title, long operations, std::vector<variant> variants) {
    std::erase_if(variants, [title](const variant& v) {
        return (std::string(title) + ": " + v.name).find(only) == std::string::npos;
    });
    if (variants.empty()) {
        return;
    }
    for (int round = -1; round < count; ++round) {
        for (variant& v : variants) {
            begin = {};
            v.work(operations);
            const reading end;
            if (round >= 0) {
                const auto n = static_cast<double>(operations);
                const std::chrono::duration<double, std::nano> wall = end.wall - begin.wall;
                v.wall.push_back(wall.count() / n);
                v.cpu.push_back((end.cpu - begin.cpu) * 1e9 / n);
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
    if (rounds_file != nullptr) {
        write(title, variants);
    }
}

} // namespace rounds
