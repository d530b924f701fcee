// The sleepers' workload, the same for every runtime: COUNT coroutines, each of which sleeps a
// random time ROUNDS times. A program provides its coroutines and its loop; delays, measurement and
// output are here.
#pragma once

#include "../lib/usage.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace sleepers {

using clock = std::chrono::steady_clock;

struct options {
    unsigned count = 10'000;
    unsigned rounds = 10;
    unsigned max_ms = 100;
    std::uint64_t seed = 1;
    unsigned slack_us = 500; // only of coil: io_context_options::timer_slack
    bool memory = false;     // measure only the bytes of a sleeping coroutine
};

[[noreturn]] inline void misuse(const char* program) {
    std::fprintf(stderr,
                 "usage: %s [COUNT] [--rounds N] [--max-ms N] [--seed N] [--slack-us N] "
                 "[--memory]\n",
                 program);
    std::exit(2);
}

inline options parse_options(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (name == "--memory") {
            o.memory = true;
            continue;
        }
        const bool positional = name.front() != '-';
        if (!positional && ++i == argc) {
            misuse(argv[0]);
        }
        char* end = nullptr;
        const unsigned long long value = std::strtoull(argv[i], &end, 10);
        if (end == argv[i] || *end != '\0' || value > 100'000'000) {
            misuse(argv[0]);
        }
        if (positional) {
            o.count = static_cast<unsigned>(value);
        } else if (name == "--rounds") {
            o.rounds = static_cast<unsigned>(value);
        } else if (name == "--max-ms") {
            o.max_ms = static_cast<unsigned>(value);
        } else if (name == "--slack-us") {
            o.slack_us = static_cast<unsigned>(value);
        } else if (name == "--seed") {
            o.seed = value;
        } else {
            misuse(argv[0]);
        }
    }
    if (o.count == 0 || o.rounds == 0) {
        misuse(argv[0]);
    }
    return o;
}

class workload {
public:
    explicit workload(const options& o) : options_(o) {
        // Touched here, so that storing a result causes no page fault while measuring.
        lateness_.assign(o.memory ? 0 : std::size_t{o.count} * o.rounds,
                         std::numeric_limits<std::uint32_t>::max());
    }

    const options& settings() const { return options_; }
    unsigned count() const { return options_.count; }
    unsigned rounds() const { return options_.memory ? 1 : options_.rounds; }

    // Call before the first coroutine is created.
    void begin() {
        memory_before_ = usage::private_bytes();
        cpu_ = usage::cpu_seconds();
        wall_ = clock::now();
    }

    // Uniform in [0, max_ms), the same for one (seed, sleeper, round) in every runtime. When memory
    // is measured, all delays are so long that the last coroutine is asleep before the first wakes.
    clock::duration delay(unsigned sleeper, unsigned round) const {
        if (options_.memory) {
            return std::chrono::seconds{2};
        }
        const std::uint64_t random = mix(mix(options_.seed + sleeper) + round);
        const auto span = static_cast<std::uint64_t>(options_.max_ms) * 1'000'000;
        return std::chrono::nanoseconds{span == 0 ? 0 : random % span};
    }

    void falls_asleep() { ++asleep_; }

    void woke(clock::time_point due) {
        --asleep_;
        if (options_.memory) {
            return;
        }
        const auto late =
            std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - due).count();
        if (late < 0) {
            ++early_;
        }
        const auto limit = static_cast<long long>(std::numeric_limits<std::uint32_t>::max());
        lateness_[next_++] = static_cast<std::uint32_t>(std::clamp<long long>(late, 0, limit));
    }

    // Call from a coroutine that was started after all sleepers.
    void sample_memory() {
        if (asleep_ == options_.count) {
            memory_asleep_ = usage::private_bytes();
        }
    }

    // Prints one JSON object on stdout. Returns the exit code.
    int report(const char* runtime) {
        const double wall = std::chrono::duration<double>(clock::now() - wall_).count();
        const double cpu = usage::cpu_seconds() - cpu_;
        std::printf("{\"runtime\": \"%s\", \"sleepers\": %u, ", runtime, options_.count);
        if (options_.memory) {
            if (memory_asleep_ < 0 || memory_before_ < 0) {
                std::printf("\"error\": \"not all sleepers were asleep at once\"}\n");
                return 1;
            }
            std::printf("\"bytes_per_sleeper\": %.1f}\n",
                        static_cast<double>(memory_asleep_ - memory_before_) / options_.count);
            return 0;
        }
        const std::size_t woken = next_;
        std::printf(
            "\"rounds\": %u, \"max_ms\": %u, \"wakes\": %zu, \"cpu_s\": %.6f, \"wall_s\": %.6f, "
            "\"late_p50_us\": %.1f, \"late_p99_us\": %.1f, \"late_max_us\": %.1f, \"early\": %u}\n",
            options_.rounds, options_.max_ms, woken, cpu, wall, late_us(0.50), late_us(0.99),
            late_us(1), early_);
        return woken == lateness_.size() && early_ == 0 ? 0 : 1;
    }

private:
    // A bijection on 64 bits that spreads neighbouring numbers: two rounds of multiply and fold.
    static std::uint64_t mix(std::uint64_t x) {
        x = (x + 0x9e3779b97f4a7c15u) * 0xd1342543de82ef95u;
        x ^= x >> 32;
        x *= 0xaf251af3b0f025b5u;
        return x ^ (x >> 29);
    }

    double late_us(double share) {
        const auto at = static_cast<std::size_t>(share * static_cast<double>(lateness_.size() - 1));
        std::nth_element(lateness_.begin(), lateness_.begin() + static_cast<std::ptrdiff_t>(at),
                         lateness_.end());
        return lateness_[at] / 1000.0;
    }

    options options_;
    std::vector<std::uint32_t> lateness_; // ns
    std::size_t next_ = 0;
    unsigned asleep_ = 0, early_ = 0;
    long memory_before_ = -1, memory_asleep_ = -1;
    double cpu_ = 0;
    clock::time_point wall_;
};

} // namespace sleepers
