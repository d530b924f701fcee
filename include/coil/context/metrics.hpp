#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/log2_histogram.hpp>

#include <cstdint>
#include <string>

namespace coil {

/// How a context waited while it had nothing to run: see idle_policy. Updated immediately.
struct idle_metrics {
    std::uint64_t parks = 0;            ///< times it slept in the kernel
    std::uint64_t spins = 0;            ///< times it looked for work before sleeping
    std::uint64_t spin_experiments = 0; ///< comparisons of two ways of waiting
    /// 1 while the context sleeps without spinning, because its experiments have shown that
    /// spinning does not pay.
    std::uint64_t spins_suppressed = 0;
    /// 1 while its sleeps wait for several completions, because its experiments have shown that
    /// this pays.
    std::uint64_t sleeps_batched = 0;
    /// 1 if the kernel has accepted io_context_options::napi. Written when run() begins.
    std::uint64_t napi_busy_polling = 0;
};

/// The metrics of a context, returned by io_context::metrics(): totals since its creation, and its
/// recent state. docs/reference/metrics.md explains how to interpret them.
///
///     const context_metrics m = ctx.metrics();
///     log(m.completions, m.submissions_per_enter());
///
/// Each figure is correct by itself, but they are not from the same instant, because the context
/// runs while they are read. Counters never decrease.
struct context_metrics : idle_metrics {
    // Counters that are updated immediately.
    std::uint64_t enters = 0;               ///< io_uring_enter system calls
    std::uint64_t submissions = 0;          ///< SQEs handed to the kernel
    std::uint64_t completions = 0;          ///< CQEs received
    std::uint64_t wake_ups_sent = 0;        ///< sleeps that another thread ended by a system call
    std::uint64_t wake_ups_elided = 0;      ///< messages of other threads that needed no such call
    std::uint64_t refusals = 0;             ///< enters refused temporarily (EBUSY, EAGAIN)
    std::uint64_t overflows = 0;            ///< enters after which completions waited for space
    std::uint64_t cancels = 0;              ///< cancellation requests
    std::uint64_t cancel_retries = 0;       ///< cancellation requests that had to be repeated
    std::uint64_t unhandled_exceptions = 0; ///< exceptions that no joiner received
    // The limits for these are in watchdog_options. The first two count only while the watchdog is
    // on.
    std::uint64_t long_turns = 0;       ///< turns that the watchdog found to be too long
    std::uint64_t await_loops = 0;      ///< of these: caused by awaits that never suspended
    std::uint64_t late_resumptions = 0; ///< samples of ready_delay above the limit
    std::uint64_t late_timers = 0;      ///< times that timers fired later than the limit

    // Counters that are updated at the end of each turn.
    std::uint64_t tasks_started = 0;       ///< top-level tasks started here or moved here
    std::uint64_t back_pressure_waits = 0; ///< operations that waited for space in the queue

    // The state at the end of the last turn; after run() has returned, the current state.
    std::uint64_t tasks = 0;     ///< top-level tasks that have not ended
    std::uint64_t in_flight = 0; ///< SQEs whose completion is pending
    std::uint64_t timers = 0;    ///< timers that are armed
    /// Coroutines that were ready at the beginning of the turn; 0 while the context waits.
    std::uint64_t ready = 0;

    /// The longest turn so far, see turn_length. A turn of 64 µs or more is never missed, and its
    /// length is accurate to 32 µs. Exception: when all turns suddenly become long and the loop
    /// never waits between them, the first ones, up to 16, count as one turn.
    std::chrono::nanoseconds longest_turn{};

    /// Nanoseconds from the end of a wait, or of a turn, to the end of the next turn: how long the
    /// context did not check for completions, timers and messages from other threads. It covers
    /// everything between two waits: running coroutines, submitting, dispatching completions. So
    /// every turn is counted, and the sum is the total working time of the context. The
    /// distribution over short turns is approximate: consecutive short turns are measured in groups
    /// of up to 16, with one clock reading per group, and each turn of a group counts with the
    /// group's mean. Groups shrink when turns take longer, to less than about 32 µs per group.
    /// Polling before sleeping counts as waiting.
    log2_histogram turn_length;

    /// Nanoseconds that a ready coroutine waited to be resumed. Sampled in one turn of 127: the
    /// coroutine that is last in the ready queue at the beginning of the turn is timed until it is
    /// resumed. None of the coroutines queued at that time waits longer. Turns are sampled
    /// regardless of their content, so the samples are unbiased. Not included: the time that a
    /// completion spent in the completion queue during the previous turn (at most the length of
    /// that turn), and coroutines that became ready in the middle of a turn.
    log2_histogram ready_delay;

    /// 0 before the first enter. Completions found by polling without an enter count as well.
    [[nodiscard]] constexpr double submissions_per_enter() const noexcept {
        return per_enter(submissions);
    }
    [[nodiscard]] constexpr double completions_per_enter() const noexcept {
        return per_enter(completions);
    }

private:
    [[nodiscard]] constexpr double per_enter(std::uint64_t n) const noexcept {
        return enters == 0 ? 0.0 : static_cast<double>(n) / static_cast<double>(enters);
    }
};

/// Human-readable text, one line per subject. The format may change.
[[nodiscard]] std::string to_string(const context_metrics& metrics);

} // namespace coil
