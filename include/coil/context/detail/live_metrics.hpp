#pragma once

#include <coil/context/log2_histogram.hpp>
#include <coil/context/metrics.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// A number that one thread writes and any thread reads. It is written with a load and a store
/// instead of an atomic read-modify-write: with a single writer nothing is lost, and it costs as
/// much as a plain increment.
class counter {
public:
    counter() noexcept = default;
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;

    [[nodiscard]] std::uint64_t get() const noexcept {
        return value_.load(std::memory_order_relaxed);
    }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    void operator+=(std::uint64_t n) noexcept { set(get() + n); }
    void operator++() noexcept { *this += 1; }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// A log2_histogram of such counters.
class live_histogram {
public:
    void add(std::uint64_t value, std::uint64_t times = 1) noexcept {
        add(value, times, value * times);
    }
    /// Adds `times` values of about this size, whose exact total is `sum`.
    void add(std::uint64_t value, std::uint64_t times, std::uint64_t sum) noexcept {
        in_bucket_[log2_histogram::bucket_of(value)] += times;
        sum_ += sum;
    }

    [[nodiscard]] log2_histogram snapshot() const noexcept {
        log2_histogram::counts counts;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            counts[i] = in_bucket_[i].get();
        }
        return {counts, sum_.get()};
    }

private:
    counter sum_;
    std::array<counter, log2_histogram::buckets> in_bucket_;
};

/// The part of live_metrics that is named as in idle_metrics.
struct live_idle_metrics {
    counter parks;
    counter spins;
    counter spin_experiments;
    counter spins_suppressed;
    counter sleeps_batched;
    counter napi_busy_polling;
};

/// The metrics that a running context writes, named as in context_metrics.
struct live_metrics : live_idle_metrics {
    counter enters;
    counter submissions;
    counter completions;
    counter wake_ups_sent;
    counter wake_ups_elided;
    counter refusals;
    counter overflows;
    counter cancels;
    counter cancel_retries;
    counter unhandled_exceptions;
    counter tasks_started;
    counter back_pressure_waits;
    counter tasks;
    counter in_flight;
    counter timers;
    counter ready;
    counter late_resumptions;
    counter late_timers;
    // Written by the watchdog's thread.
    counter long_turns;
    counter await_loops;

    // For the watchdog, not in context_metrics.
    counter turns;
    counter last_ready_delay_ns;
    counter last_timer_delay_ns;

    void note_late_resumption(std::uint64_t delay_ns) noexcept {
        last_ready_delay_ns.set(delay_ns);
        ++late_resumptions;
    }
    void note_late_timer(std::int64_t delay_ns) noexcept {
        last_timer_delay_ns.set(static_cast<std::uint64_t>(delay_ns));
        ++late_timers;
    }

    /// May be called from any thread. Contains everything except the figures of turn_meter and
    /// ready_probe.
    [[nodiscard]] context_metrics snapshot() const noexcept;
};

} // namespace coil::detail
