// Round trips between two threads: arguments, measurement and output, shared by all variants. A hop
// is half a round trip.
#pragma once

#include "../lib/pin.hpp"
#include "../lib/usage.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace hops {

using clock = std::chrono::steady_clock;

struct options {
    std::string_view variant;
    unsigned batches = 0;
    int cpus[2] = {-1, -1};
};

inline options parse_options(int argc, char** argv,
                             std::initializer_list<std::string_view> variants) {
    options o;
    if (argc == 5) {
        o.variant = argv[1];
        o.batches = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
        o.cpus[0] = std::atoi(argv[3]);
        o.cpus[1] = std::atoi(argv[4]);
    }
    if (std::find(variants.begin(), variants.end(), o.variant) == variants.end() ||
        o.batches == 0) {
        std::fprintf(stderr, "usage: %s VARIANT BATCHES CPU CPU\nvariants:", argv[0]);
        for (const std::string_view variant : variants) {
            std::fprintf(stderr, " %.*s", static_cast<int>(variant.size()), variant.data());
        }
        std::fprintf(stderr, "\n");
        std::exit(2);
    }
    return o;
}

// The clock is read after each batch of round trips. The figure is the median over the batches,
// because a batch in which another process ran on one of the CPUs is not representative.
class measurement {
public:
    static constexpr unsigned batch = 500; // round trips

    explicit measurement(const options& o) : batches_(o.batches) { ends_.reserve(batches_ + 1); }

    // All round trips, including those before the first reading, which warm up.
    unsigned round_trips() const { return (batches_ + 1) * batch; }
    // The hops that are measured.
    double hops() const { return 2.0 * batch * batches_; }

    // Called after the i-th round trip by the thread that counts them. Returns true when measuring
    // begins or ends.
    bool made(unsigned i) {
        if ((i + 1) % batch != 0) {
            return false;
        }
        ends_.push_back(clock::now());
        if (ends_.size() == 1) {
            cpu_ = -usage::cpu_seconds();
            return true;
        }
        if (ends_.size() == batches_ + 1) {
            cpu_ += usage::cpu_seconds();
            return true;
        }
        return false;
    }

    // Prints one JSON object; `calls` is the number of system calls while measuring, if known.
    int report(double calls) const {
        if (ends_.size() != batches_ + 1) {
            std::fprintf(stderr, "%zu of %u batches were made\n", ends_.size(), batches_ + 1);
            return 1;
        }
        std::vector<double> lengths;
        for (std::size_t i = 1; i < ends_.size(); ++i) {
            lengths.push_back(ns(ends_[i] - ends_[i - 1]) / (2.0 * batch));
        }
        const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
        std::nth_element(lengths.begin(), middle, lengths.end());
        const double all = hops();
        std::printf("{\"hops\": %.0f, \"ns\": %.1f, \"mean_ns\": %.1f, \"cpu_ns\": %.1f, "
                    "\"calls_per_hop\": %.6f}\n",
                    all, *middle, ns(ends_.back() - ends_.front()) / all, cpu_ * 1e9 / all,
                    calls / all);
        return 0;
    }

private:
    static double ns(clock::duration d) {
        return std::chrono::duration<double, std::nano>(d).count();
    }

    unsigned batches_;
    std::vector<clock::time_point> ends_;
    double cpu_ = 0;
};

} // namespace hops
