#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/base/std_function.hpp>

#include <cstdint>

namespace coil {

struct stall_report; // <coil/context/watchdog.hpp>

/// Options of the watchdog of a context. It reports turns that take long, while they last and when
/// they have ended, from a thread that watches all contexts of the process. The thread starts with
/// the first run() of a watched context. It reports nothing while a debugger is attached, while the
/// process is stopped or does not get enough CPU time itself, and in a simulated world.
///
/// To read the stack, it interrupts the blocked thread with a realtime signal that the program does
/// not use, the highest one that has its default disposition. System calls are restarted, except
/// those that never are (signal(7): sleep, poll, select, ...), which fail early with EINTR. This
/// happens only in a turn that is reported.
struct watchdog_options {
    enum class use : std::uint8_t {
        /// The environment variable COIL_WATCHDOG ("on" or "off") decides. Without it, on if coil
        /// itself is a debug build without sanitizers.
        automatic,
        on,
        off,
    };
    use enabled = use::automatic;
    /// Longer turns are reported; at least 1 ms.
    std::chrono::nanoseconds turn = std::chrono::milliseconds(25);
    // Longer delays are reported. The first two are counted in the metrics even without the
    // watchdog.
    std::chrono::nanoseconds ready_delay = std::chrono::milliseconds(100);
    std::chrono::nanoseconds timer_delay = std::chrono::milliseconds(100);
    std::chrono::nanoseconds pool_delay = std::chrono::seconds(1);
    /// At most one stall per place is reported in this time (a long turn twice, see
    /// stall_report::has_ended). Further stalls there are counted, and reported together at the end
    /// of the interval (stall_report::times).
    std::chrono::nanoseconds interval = std::chrono::seconds(10);
    /// Whether to interrupt the thread. If not, reports have neither a stack nor a task.
    bool interrupts = true;
    /// Called on the watchdog's thread, even while the context is blocked. It must not throw, and
    /// must not wait for the end of run(), because run() waits for it. By default, prints the
    /// report on stderr.
    std::function<void(const stall_report&)> on_report = {};
};

} // namespace coil
