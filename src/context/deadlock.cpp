// Tasks that wait for ever.

#include "admin_server.hpp"
#include "dump_signal.hpp"
#include "stall_watchdog.hpp"
#include "task_snapshot.hpp"

#include <coil/context/event_loop.hpp>
#include <coil/context/options.hpp>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>

#include <sys/stat.h>

namespace coil::detail {

namespace {

constexpr std::uint32_t reported = UINT32_MAX;

/// Whether this process has one thread besides those of admin sockets, the watchdog, and dumps on a
/// signal, which wake no task. False if that is unknown.
bool is_only_thread() noexcept {
    struct ::stat threads{};
    // "." and "..", and a directory for each thread
    return ::stat("/proc/self/task", &threads) == 0 &&
           threads.st_nlink == 3 + admin_server::count() + (stall_watchdog::has_thread() ? 1 : 0) +
                                   (dump_signal::has_thread() ? 1 : 0);
}

std::string describe_deadlock(event_loop& loop) {
    std::string text = "coil: these tasks wait for ever: no operation is in flight, no timer is "
                       "armed, and the process has no other thread that could wake them\n";
    try {
        constexpr std::size_t at_most = 100;
        const context_snapshot snapshot = take_snapshot(loop, at_most);
        text += to_text({&snapshot, 1});
    } catch (const std::bad_alloc&) {
        text += "(no memory to list them)\n";
    }
    return text;
}

} // namespace

/// Called before a wait that only another thread can end. Returns true if there is none, although
/// the loop has tasks, and on_deadlock has been called.
///
/// Threads are counted at the first such wait, and then at the second, fourth, eighth and so on: if
/// a thread has ended the earlier waits, one will probably end the next.
[[gnu::noinline, gnu::cold]] bool event_loop::reports_deadlock() {
    if (lonely_waits_ == reported || tasks_.empty() || submissions_.has_queued() ||
        cancellations_.has_retries()) {
        return false;
    }
    ++lonely_waits_;
    if (!std::has_single_bit(lonely_waits_) || !is_only_thread()) {
        return false;
    }
    lonely_waits_ = reported;
    const std::string text = describe_deadlock(*this);
    if (options_.on_deadlock) {
        options_.on_deadlock(text);
    } else {
        std::fputs(text.c_str(), stderr);
    }
    return true;
}

} // namespace coil::detail
