// Shared by the programs of this folder: a clock and the output.
#pragma once

#include "../lib/pin.hpp"
#include "../lib/usage.hpp"
#include "../lib/variants.hpp"

#include <chrono>
#include <cstdio>
#include <vector>

namespace sync_bench {

using clock = std::chrono::steady_clock;

class stopwatch {
public:
    stopwatch() : cpu_(usage::cpu_seconds()), begin_(clock::now()) {}

    // Prints one JSON object. `shares`: the work done by each participant; the least is reported as
    // a fraction of the mean.
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
