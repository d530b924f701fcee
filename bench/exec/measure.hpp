// What the programs of this folder have in common: their arguments, where they run, and the output.
#pragma once

#include "../lib/usage.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sched.h>

namespace exec_bench {

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

// This thread, and those that it starts from now on.
inline void pin(int cpu, int other) {
    cpu_set_t both;
    CPU_ZERO(&both);
    CPU_SET(static_cast<unsigned>(cpu), &both);
    CPU_SET(static_cast<unsigned>(other), &both);
    if (sched_setaffinity(0, sizeof both, &both) != 0) {
        std::perror("sched_setaffinity");
        std::exit(1);
    }
}

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

    // One JSON object, when it has been stopped.
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
