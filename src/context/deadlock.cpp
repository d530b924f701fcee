// Tasks that wait for ever.

#include "admin_server.hpp"
#include "dump_signal.hpp"
#include "stall_watchdog.hpp"
#include "task_snapshot.hpp"

#include <coil/context/event_loop.hpp>
#include <coil/context/options.hpp>
#include <coil/context/runtime.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>

#include <sys/stat.h>

namespace coil::detail {

namespace {

/// The value of lonely_waits, an even number, after a report.
constexpr std::uint32_t reported = UINT32_MAX - 1;

/// The threads of this library that wake no task.
std::size_t threads_aside() noexcept {
    return admin_server::count() + (stall_watchdog::has_thread() ? 1 : 0) +
           (dump_signal::has_thread() ? 1 : 0);
}

/// Whether this process has this number of threads besides those aside. False if that is unknown.
bool has_only_threads(std::size_t count) noexcept {
    struct ::stat threads{};
    // "." and "..", and a directory for each thread
    return ::stat("/proc/self/task", &threads) == 0 &&
           threads.st_nlink == 2 + count + threads_aside();
}

/// `all`: the runtime that waits for ever, or null.
std::string describe_deadlock(event_loop& loop, runtime* all) {
    std::string text = "coil: these tasks wait for ever: no operation is in flight, no timer is "
                       "armed, and the process has no other thread that could wake them\n";
    try {
        constexpr std::size_t at_most = 100;
        if (all != nullptr) {
            return text + all->dump_tasks(at_most);
        }
        const context_snapshot snapshot = take_snapshot(loop, at_most);
        text += to_text({&snapshot, 1});
    } catch (const std::bad_alloc&) {
        text += "(no memory to list them)\n";
    }
    return text;
}

} // namespace

/// Called before a wait that only another thread can end. Returns true if there is none, although
/// the loop, or another one of its runtime, has tasks, and on_deadlock has been called.
///
/// Outside of a runtime, threads are counted at the first such wait, and then at the second,
/// fourth, eighth and so on: if a thread has ended the earlier waits, one will probably end the
/// next.
///
/// In a runtime, every context must wait like this one, without a message. They are looked at
/// twice: if each is in the same wait both times, all of them waited at one moment, and no message
/// was on its way. Of contexts that begin to wait at the same time, at least one sees that of all.
[[gnu::noinline, gnu::cold]] bool event_loop::reports_deadlock() {
    std::atomic<std::uint32_t>& own = signals_.lonely_waits;
    if (submissions_.has_queued() || cancellations_.has_retries() ||
        own.load(std::memory_order_relaxed) == reported) {
        return false;
    }
    const std::uint32_t waits = own.load(std::memory_order_relaxed) / 2 + 1;
    own.store(2 * waits - 1, std::memory_order_seq_cst);
    runtime* const all = round_.takes_part() ? round_.owner() : nullptr;
    if (all == nullptr) {
        if (tasks_.empty() || !std::has_single_bit(waits) || !has_only_threads(1)) {
            return false;
        }
    } else {
        bool has_tasks = false;
        const auto sum_of_waits = [&]() -> std::uint64_t { // 0: one does not wait
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i < all->size(); ++i) {
                event_loop& one = all->context(i).loop();
                const bool has_message = !one.inbox_.holds_nothing();
                const std::uint32_t count = one.signals_.lonely_waits.load();
                if (has_message || count % 2 == 0) {
                    return 0;
                }
                has_tasks = has_tasks || one.load() > 0;
                sum += count;
            }
            return sum;
        };
        const std::uint64_t sum = sum_of_waits();
        if (sum == 0 || sum_of_waits() != sum || !has_tasks || !has_only_threads(all->size()) ||
            !round_.claim_deadlock_report()) {
            return false;
        }
    }
    const std::string text = describe_deadlock(*this, all);
    if (all == nullptr) {
        own.store(reported, std::memory_order_relaxed);
    }
    if (options_.on_deadlock) {
        options_.on_deadlock(text);
    } else {
        std::fputs(text.c_str(), stderr);
    }
    return true;
}

} // namespace coil::detail
