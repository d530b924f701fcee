#pragma once

#include "object.hpp"
#include "trace.hpp"

#include <coil/sim/options.hpp>
#include <coil/sim/random.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace coil::sim::detail {

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// The world's clock, event queue, random numbers and trace.
class event_scheduler {
public:
    /// The function of an event. The scheduler keeps `about` alive until it has called the
    /// function.
    using action = void (*)(object& about, std::uint64_t a, std::uint64_t b);

    event_scheduler(std::uint64_t seed, const world_options& wanted)
        : options(wanted), random(seed), trace(wanted, now_) {}

    [[nodiscard]] std::int64_t now() const noexcept { return now_; }

    void at(std::int64_t time, object& about, action what, std::uint64_t a = 0,
            std::uint64_t b = 0);
    void after(std::int64_t delay, object& about, action what, std::uint64_t a = 0,
               std::uint64_t b = 0) {
        at(now_ + delay, about, what, a, b);
    }

    /// The time of the next event.
    [[nodiscard]] std::int64_t next() const noexcept {
        return queue_.empty() ? never : queue_.front().time;
    }
    /// Runs all events that are due, ordered by time and then by creation.
    void run_due();
    void advance_to(std::int64_t time) noexcept {
        if (time > now_) {
            now_ = time;
        }
    }
    /// Discards all events.
    void forget() noexcept {
        queue_.clear();
        events_.clear();
        free_.clear();
    }

    /// Returns true with a probability of `per_mille`/1000, and records the fault in the trace.
    [[nodiscard]] bool fault(unsigned per_mille, const char* what) {
        if (per_mille == 0 || faultless != 0 || !random.chance(per_mille)) {
            return false;
        }
        ++faults;
        trace.fault(what);
        return true;
    }

    const world_options options;
    random_source random;
    tracer trace;
    std::uint64_t operations = 0;
    std::uint64_t faults = 0;
    unsigned faultless = 0; // no faults are injected while this is above 0

private:
    struct event {
        action what;
        ref<object> about;
        std::uint64_t a;
        std::uint64_t b;
    };
    struct moment {
        std::int64_t time;
        std::uint64_t order;
        std::size_t event;

        /// For a heap whose first element is the earliest.
        friend bool operator<(const moment& x, const moment& y) noexcept {
            return x.time != y.time ? x.time > y.time : x.order > y.order;
        }
    };

    std::int64_t now_ = 1'000'000'000; // a clock starting at 0 could hide errors
    std::uint64_t order_ = 0;
    std::vector<moment> queue_; // a heap
    std::vector<event> events_;
    std::vector<std::size_t> free_; // unused elements of events_
};

} // namespace coil::sim::detail
