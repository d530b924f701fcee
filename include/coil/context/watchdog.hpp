#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/watchdog_options.hpp> // IWYU pragma: export
#include <coil/core/backtrace.hpp>

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace coil {

/// A report of the watchdog; passed to watchdog_options::on_report.
struct stall_report {
    enum class kind : std::uint8_t {
        /// A coroutine blocks its context's thread: a turn takes longer than the limit.
        long_turn,
        /// A long turn caused by a task that awaits again and again without ever suspending.
        /// Detected for awaits of tasks, in programs that are compiled with assertions
        /// (COIL_ASSERT).
        await_loop,
        /// A ready coroutine waited longer than watchdog_options::ready_delay.
        late_resumption,
        /// A timer fired later than watchdog_options::timer_delay.
        late_timer,
        /// Calls have waited longer than watchdog_options::pool_delay for a thread of a
        /// blocking_pool.
        full_pool,
    };

    kind what = kind::long_turn;
    /// The name of the context or pool.
    std::string where;
    /// The duration of the stall so far, or the delay.
    std::chrono::nanoseconds duration{};
    /// For a long turn or an await loop: whether it has ended; `duration` is then its total
    /// duration. Each one is reported twice: while it lasts, and after it has ended.
    bool has_ended = false;
    /// The longest duration at the same place so far, this one included.
    std::chrono::nanoseconds longest{};
    /// The number of events that this report stands for: this one, and those at the same place that
    /// were not reported separately. 1 in the second report of an event.
    std::uint64_t times = 1;

    // For a long turn or an await loop.
    /// The task that runs; empty if it has no name, or is unknown.
    std::string task;
    /// Where a task with a name was spawned.
    std::optional<std::source_location> spawned_at;
    /// The stack of the blocked thread, the innermost function first, down to the coroutine that
    /// the context has resumed. Empty if the thread was not interrupted.
    std::vector<backtrace_entry> stack;
    /// The chain of awaits of the task, as in task_backtrace; empty if the task is unknown.
    std::vector<backtrace_entry> awaits;
};

/// Several lines, as the watchdog prints them by default. The format may change.
[[nodiscard]] std::string to_string(const stall_report& report);

} // namespace coil
