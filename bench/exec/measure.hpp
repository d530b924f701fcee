// Shared by the programs of this folder: pinning, a clock and the output.
#pragma once

#include "../lib/pin.hpp"
#include "../lib/usage.hpp"
#include "../lib/variants.hpp"

#include <chrono>
#include <cstdio>

namespace exec_bench {

using clock = std::chrono::steady_clock;

class stopwatch {
public:
    void start() {
        cpu_ -= usage::cpu_seconds();
        wall_ -= now();
    }
    void stop() {
        wall_ += now();
        cpu_ += usage::cpu_seconds();
    }

    // Prints one JSON object. Call after stopping.
    int report(double count) const {
        std::printf("{\"count\": %.0f, \"ns\": %.3f, \"cpu_ns\": %.3f}\n", count,
                    wall_ * 1e9 / count, cpu_ * 1e9 / count);
        return 0;
    }

private:
    static double now() {
        return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
    }

    double cpu_ = 0;
    double wall_ = 0;
};

} // namespace exec_bench
