// Messages from many threads to one: arguments, verification, measurement and output, shared by all
// variants.
#pragma once

#include "../lib/pin.hpp"
#include "../lib/usage.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <string_view>
#include <thread>
#include <vector>

namespace posts {

using clock = std::chrono::steady_clock;

struct options {
    std::string_view variant;
    unsigned each = 0; // messages per producer
    unsigned producers = 0;
    int consumer_cpu = -1; // -1: not pinned
    int producer_cpu = -1;
};

inline options parse_options(int argc, char** argv, std::string_view one,
                             std::string_view another) {
    options o;
    if (argc == 6) {
        o.variant = argv[1];
        o.producers = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
        const unsigned long all = std::strtoul(argv[2], nullptr, 10);
        o.each = o.producers == 0 ? 0 : static_cast<unsigned>(all / o.producers);
        o.consumer_cpu = std::atoi(argv[4]);
        o.producer_cpu = std::atoi(argv[5]);
    }
    if ((o.variant != one && o.variant != another) || o.each == 0) {
        std::fprintf(stderr,
                     "usage: %s %.*s|%.*s MESSAGES PRODUCERS CONSUMER'S-CPU PRODUCERS'-CPU\n",
                     argv[0], static_cast<int>(one.size()), one.data(),
                     static_cast<int>(another.size()), another.data());
        std::exit(2);
    }
    return o;
}

// A negative CPU means any.
inline void pin_if_asked(int cpu) {
    if (cpu >= 0) {
        pin_this_thread(cpu);
    }
}

// The most messages that a producer may be ahead of the consumer. It bounds the memory of variants
// that do not preallocate, and is large enough that a busy consumer never runs out.
inline constexpr unsigned window = 65536;

// The messages that the consumer has received from one producer: verifies that none is lost or
// reordered.
class alignas(128) account {
public:
    // Consumer only.
    void take(unsigned number) {
        const unsigned had = had_.load(std::memory_order_relaxed);
        if (number != had) {
            std::fprintf(stderr, "received message %u of a producer instead of message %u\n",
                         number, had);
            std::exit(1);
        }
        had_.store(had + 1, std::memory_order_release);
    }
    unsigned had() const { return had_.load(std::memory_order_acquire); }

private:
    std::atomic<unsigned> had_{0};
};

class workload {
public:
    explicit workload(const options& o) : options_(o), accounts_(o.producers) {}

    const options& settings() const { return options_; }

    // Consumer only.
    void take(unsigned producer, unsigned number) {
        accounts_[producer].take(number);
        if (++taken_ == std::uint64_t{options_.each} * options_.producers) {
            done_.count_down();
        }
    }

    // Runs the producers: calls send(producer, number) for each message, on one thread per
    // producer. Returns when the consumer has received them all.
    template <class Send>
    void run(Send send) {
        std::latch ready(options_.producers + 1);
        std::vector<std::jthread> threads;
        threads.reserve(options_.producers);
        for (unsigned p = 0; p < options_.producers; ++p) {
            threads.emplace_back([this, p, &ready, &send] {
                pin_if_asked(options_.producer_cpu);
                ready.arrive_and_wait();
                produce(p, send);
            });
        }
        const double cpu = usage::cpu_seconds();
        ready.arrive_and_wait();
        const auto begin = clock::now();
        done_.wait();
        seconds_ = std::chrono::duration<double>(clock::now() - begin).count();
        cpu_ = usage::cpu_seconds() - cpu;
    }

    // Prints one JSON object.
    int report() const {
        const double all = 1.0 * options_.each * options_.producers;
        for (const account& each : accounts_) {
            if (each.had() != options_.each) {
                std::fprintf(stderr, "received %u of %u messages of a producer\n", each.had(),
                             options_.each);
                return 1;
            }
        }
        std::printf("{\"messages\": %.0f, \"per_s\": %.0f, \"wall_s\": %.4f, \"cpu_ns\": %.2f}\n",
                    all, all / seconds_, seconds_, cpu_ * 1e9 / all);
        return 0;
    }

private:
    template <class Send>
    void produce(unsigned producer, Send& send) {
        unsigned room = window;
        for (unsigned i = 0; i < options_.each; ++i) {
            // Sleeps, because waiting is not what is measured. The consumer needs longer than
            // this sleep for half a window.
            while (i == room) {
                const unsigned free = accounts_[producer].had() + window - i;
                if (free >= window / 2) {
                    room += free;
                } else {
                    std::this_thread::sleep_for(std::chrono::microseconds(100));
                }
            }
            send(producer, i);
        }
    }

    options options_;
    std::vector<account> accounts_;
    std::uint64_t taken_ = 0;
    std::latch done_{1};
    double seconds_ = 0;
    double cpu_ = 0;
};

} // namespace posts
