#pragma once

#include <coil/context/log2_histogram.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace coil {

/// What a context has done since it was made, and how it stood a moment ago: io_context::metrics().
/// docs/reference/metrics.md says what to conclude from each.
///
/// Each figure is right by itself, but they are not of one instant: the context goes on while they
/// are read. Counters never fall.
struct context_metrics {
    // Counters. Of these the context knows at once.
    std::uint64_t enters = 0;               ///< io_uring_enter system calls
    std::uint64_t submissions = 0;          ///< SQEs handed to the kernel
    std::uint64_t completions = 0;          ///< CQEs received
    std::uint64_t parks = 0;                ///< times it slept in the kernel
    std::uint64_t spins = 0;                ///< times it looked for work before sleeping
    std::uint64_t wake_ups_sent = 0;        ///< sleeps that another thread ended by a system call
    std::uint64_t wake_ups_elided = 0;      ///< messages of other threads that needed no such call
    std::uint64_t refusals = 0;             ///< enters refused for a time (EBUSY, EAGAIN)
    std::uint64_t overflows = 0;            ///< enters after which completions waited for room
    std::uint64_t cancels = 0;              ///< requests to cancel something
    std::uint64_t cancel_retries = 0;       ///< cancellations that had to be asked for again
    std::uint64_t unhandled_exceptions = 0; ///< exceptions that nobody joined for

    // Counters that are brought up to date at the end of each turn.
    std::uint64_t tasks_started = 0;       ///< top-level tasks taken in by the context
    std::uint64_t back_pressure_waits = 0; ///< operations that waited for room in the queue

    // How it stood at the end of the last turn; after run() has returned: now.
    std::uint64_t tasks = 0;     ///< top-level tasks that have not ended
    std::uint64_t in_flight = 0; ///< SQEs whose completion is to come
    std::uint64_t timers = 0;    ///< armed
    /// Coroutines that were ready when the turn began; 0 while the context waits.
    std::uint64_t ready = 0;

    /// The longest turn so far, see turn_length. A turn of 64 µs or more is never missed, and its
    /// length is known to within 32 µs. (One exception: when many short turns without a wait
    /// between them are followed at once by many that are long, up to 16 of these count as one,
    /// once.)
    std::chrono::nanoseconds longest_turn{};

    /// Nanoseconds from the end of one wait, or of one turn, to the end of the next turn: how long
    /// the context did not look at completions, timers and other threads. It covers everything
    /// between two waits: coroutines, submitting, routing completions. So the sum is all the time
    /// that the context worked, and each turn is counted. What is not exact is how the time of
    /// short turns is divided: while turns follow each other without a wait, the clock is read once
    /// in up to 16 turns (never in 32 µs or more of regular turns), and each of these gets the
    /// mean. Looking for work before sleeping counts as a wait, to within 16 looks (a microsecond).
    log2_histogram turn_length;

    /// Nanoseconds that a ready coroutine waited for its turn. Sampled: in one turn of 127 the
    /// coroutine that is last in line when the turn begins, from then until it is resumed. It has
    /// everybody before it, so of those that were there none waited longer; turns are taken
    /// whatever happens in them, so the samples are those of an observer who comes at any turn. Not
    /// in it: how long a completion lay in its queue while the turn before went on (at most the
    /// length of that turn), and what became ready in the middle of a turn.
    log2_histogram ready_delay;

    /// 0 before the first enter. What a look finds without an enter counts as well.
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

/// For people: a line for each subject. The form may change.
[[nodiscard]] std::string to_string(const context_metrics& metrics);

} // namespace coil
