#pragma once

#include <coil/context/live_metrics.hpp>
#include <coil/context/options.hpp>
#include <coil/context/watchdog.hpp>
#include <coil/core/ready_queue.hpp>

#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace coil::detail {

/// A context's run() as the watchdog sees it. While it exists, the watchdog's thread reads what the
/// loop writes anyway: the number of turns, and whether coroutines were ready at the beginning of
/// the current one; while the loop waits, that is zero.
class watched_run {
public:
    /// On the thread that runs the context. Nothing if the watchdog is off.
    watched_run(const io_context_options& options, const ready_queue& ready,
                live_metrics& metrics) noexcept;
    watched_run(const watched_run&) = delete;
    watched_run& operator=(const watched_run&) = delete;
    /// Waits for the end of a report.
    ~watched_run();

private:
    friend class stall_watchdog;

    const io_context_options& options_;
    const ready_queue& ready_;
    live_metrics& metrics_;
    ::pid_t thread_ = 0;
    bool is_watched_ = false;
    bool unblocked_ = false; // the signal was blocked on this thread before

    // Used by the watchdog.
    watched_run* next_ = nullptr;
    std::uint64_t number_ = 0;
    bool in_use_ = false;
    std::uint64_t turns_ = 0;
    std::int64_t since_ns_ = 0;   // when this turn was first seen; 0: none is under way
    std::uint32_t popped_ = 0;    // when it was reported
    std::int64_t starved_ns_ = 0; // at that time
    bool is_reported_ = false;
    std::int64_t last_long_turn_ns_ = 0;
    std::uint64_t late_resumptions_ = 0;
    std::uint64_t late_timers_ = 0;
    std::vector<stall_report> full_pools_; // to be reported
};

} // namespace coil::detail
