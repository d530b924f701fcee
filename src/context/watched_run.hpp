#pragma once

#include "stall_places.hpp"

#include <coil/context/detail/live_metrics.hpp>
#include <coil/context/detail/turn_meter.hpp>
#include <coil/context/options.hpp>
#include <coil/context/watchdog.hpp>
#include <coil/core/detail/ready_queue.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace coil::detail {

/// A context's run() as the watchdog sees it. During its lifetime, the watchdog's thread reads
/// variables that the loop writes in any case: the number of turns, the number of coroutines that
/// were ready at the beginning of the current turn (0 while the loop waits), and the lengths of
/// long turns.
class watched_run {
public:
    /// Called on the thread that runs the context. Does nothing if the watchdog is off.
    watched_run(const io_context_options& options, const ready_queue& ready, live_metrics& metrics,
                const turn_meter& meter) noexcept;
    watched_run(const watched_run&) = delete;
    watched_run& operator=(const watched_run&) = delete;
    /// Waits until no report about the run is being made, and the end of a reported turn was
    /// reported.
    ~watched_run();

private:
    friend class stall_watchdog;

    const io_context_options& options_;
    const ready_queue& ready_;
    live_metrics& metrics_;
    const turn_meter& meter_;
    ::pid_t thread_ = 0;
    bool is_watched_ = false;
    bool unblocked_ = false; // the signal was blocked on this thread before

    // Used by the watchdog.
    watched_run* next_ = nullptr;
    std::uint64_t number_ = 0;
    bool in_use_ = false;
    std::uint64_t turns_ = 0;
    std::int64_t seen_ns_ = 0;  // the previous tick
    std::int64_t since_ns_ = 0; // when the current turn was first seen; 0: no turn is in progress
    // The values at that time.
    std::int64_t earliest_ns_ = 0; // the last time at which this turn was not in progress
    std::int64_t starved_ns_ = 0;
    std::uint64_t slow_turns_ = 0; // the number of this turn for turn_meter::slow_turn_ns()
    bool is_reported_ = false;
    bool has_left_ = false; // run() has ended and waits for the watchdog
    // The turn that was reported last.
    std::uint32_t popped_ = 0;
    stall_report report_{};
    reported_stall reported_{};
    std::int64_t last_long_turn_ns_ = 0;
    std::uint64_t late_resumptions_ = 0;
    std::uint64_t late_timers_ = 0;
    std::vector<stall_report> full_pools_; // to be reported
};

} // namespace coil::detail
