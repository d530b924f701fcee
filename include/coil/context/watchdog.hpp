#pragma once

#include <coil/core/backtrace.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace coil {

/// What the watchdog has seen; passed to watchdog_options::on_report.
struct stall_report {
    enum class kind : std::uint8_t {
        /// A coroutine blocks its context's thread: a turn takes longer than the limit.
        long_turn,
        /// The same, by a task that awaits again and again without ever suspending. Detected for
        /// awaits of tasks, in programs that are compiled with assertions (COIL_ASSERT).
        await_loop,
        /// A ready coroutine waited longer than watchdog_options::ready_delay.
        late_resumption,
        /// A timer fired later than watchdog_options::timer_delay.
        late_timer,
        /// Calls have waited for a thread of a blocking_pool for watchdog_options::pool_delay.
        full_pool,
    };

    kind what = kind::long_turn;
    /// The name of the context or pool.
    std::string where;
    /// How long it has taken until now, or the delay.
    std::chrono::nanoseconds duration{};
    /// How many reports this one stands for: it, and those of the same place that were held back.
    std::uint64_t times = 1;

    // Of a long turn or an await loop.
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

/// Options of the watchdog of a context. It reports turns that take long, while they last, from a
/// thread that watches all contexts of the process. The thread starts with the first run() of a
/// watched context. It reports nothing while a debugger is attached, while the process is stopped
/// or does not get enough CPU time itself, and in a simulated world.
///
/// To read the stack, it interrupts the blocked thread by a realtime signal that the program does
/// not use, the highest one that has its default disposition. System calls are restarted, except
/// those that never are (signal(7): sleep, poll, select, ...), which return EINTR early: only in a
/// turn that is reported.
struct watchdog_options {
    enum class use : std::uint8_t {
        /// As COIL_WATCHDOG in the environment says, "on" or "off"; without it, on if coil itself
        /// is a debug build without sanitizers.
        automatic,
        on,
        off,
    };
    use enabled = use::automatic;
    /// Longer turns are reported; at least 1 ms.
    std::chrono::nanoseconds turn = std::chrono::milliseconds(25);
    // The delays that are reported, and that count in the metrics also without the watchdog.
    std::chrono::nanoseconds ready_delay = std::chrono::milliseconds(100);
    std::chrono::nanoseconds timer_delay = std::chrono::milliseconds(100);
    std::chrono::nanoseconds pool_delay = std::chrono::seconds(1);
    /// Each place is reported at most once in this time. What happens there meanwhile is counted,
    /// and reported at the end of it (stall_report::times).
    std::chrono::nanoseconds interval = std::chrono::seconds(10);
    /// Whether to interrupt the thread. If not, reports have neither a stack nor a task.
    bool interrupts = true;
    /// Called on the watchdog's thread, also while the context is blocked. It must not throw, nor
    /// wait for the end of run(), which waits for it. By default, prints the report on stderr.
    std::function<void(const stall_report&)> on_report = {};
};

} // namespace coil
