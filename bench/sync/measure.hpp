// What the programs of this folder have in common: their arguments, a clock and the output.
#pragma once

#include "../lib/pin.hpp"
#include "../lib/usage.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace sync_bench {

using clock = std::chrono::steady_clock;

struct options {
    std::string_view way;
    long count = 0;
    int cpus[2] = {-1, -1};
};

inline options parse(int argc, char** argv, const char* ways) {
    options o;
    if (argc == 5) {
        o.way = argv[1];
        o.count = std::atol(argv[2]);
        o.cpus[0] = std::atoi(argv[3]);
        o.cpus[1] = std::atoi(argv[4]);
    }
    if (o.count <= 0) {
        std::fprintf(stderr, "usage: %s %s COUNT CPU CPU\n", argv[0], ways);
        std::exit(2);
    }
    return o;
}

[[noreturn]] inline void unknown_way(const char* ways) {
    std::fprintf(stderr, "the way is one of %s\n", ways);
    std::exit(2);
}

class stopwatch {
public:
    stopwatch() : cpu_(usage::cpu_seconds()), begin_(clock::now()) {}

    // One JSON object. `shares`: how much each of several got done meanwhile, of which the least is
    // told as a fraction of the mean.
    int report(long count, const std::vector<long>& shares = {}) const {
        const double wall = std::chrono::duration<double>(clock::now() - begin_).count();
        const double cpu = usage::cpu_seconds() - cpu_;
        double sum = 0;
        double least = shares.empty() ? 0 : static_cast<double>(shares.front());
        for (const long share : shares) {
            sum += static_cast<double>(share);
            least = static_cast<double>(share) < least ? static_cast<double>(share) : least;
        }
        const double n = static_cast<double>(count);
        std::printf("{\"count\": %ld, \"ns\": %.3f, \"cpu_ns\": %.3f, \"per_s\": %.0f, "
                    "\"least_share\": %.4f}\n",
                    count, wall * 1e9 / n, cpu * 1e9 / n, n / wall,
                    sum > 0 ? least * static_cast<double>(shares.size()) / sum : 1.0);
        return 0;
    }

private:
    double cpu_;
    clock::time_point begin_;
};

} // namespace sync_bench
