// Detects tasks that wait for ever.

#include "admin_server.hpp"
#include "dump_signal.hpp"
#include "stall_watchdog.hpp"
#include "task_snapshot.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/options.hpp>
#include <coil/context/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace coil::detail {

namespace {

/// The value of lonely_waits, an even number, after a report.
constexpr std::uint32_t reported = UINT32_MAX - 1;

/// The number of threads of this library that never wake a task.
std::size_t threads_aside() noexcept {
    return admin_server::count() + (stall_watchdog::has_thread() ? 1 : 0) +
           (dump_signal::has_thread() ? 1 : 0);
}

/// Whether the process has `count` threads besides those of threads_aside(). False if unknown.
bool has_only_threads(std::size_t count) noexcept {
    struct ::stat threads{};
    // "." and "..", and a directory for each thread
    return ::stat("/proc/self/task", &threads) == 0 &&
           threads.st_nlink == 2 + count + threads_aside();
}

/// Whether one of these tasks, or of their children, can continue without another task.
bool can_continue(const record_list<task_record>& tasks) noexcept {
    using what = wait_record::what;
    for (const task_record& task : tasks) {
        switch (task.wait.kind) {
        case what::ready:
        case what::operation:
        case what::queued:
        case what::stream:
        case what::sleep:
        case what::elsewhere:
            return true;
        default:
            if (can_continue(task.children)) {
                return true;
            }
        }
    }
    return false;
}
bool can_continue(const context_snapshot& context) noexcept {
    bool can = context.arriving > 0 || can_continue(context.tasks);
    for (const group_record& group : context.groups) {
        can = can || can_continue(group.children);
    }
    return can;
}

/// The text of the report on these contexts; empty if one of their tasks can continue after all.
std::string describe_deadlock(std::span<event_loop* const> loops) {
    std::string text = "coil: these tasks wait for ever: no operation is in flight, no timer is "
                       "armed, and the process has no other thread that could wake them\n";
    try {
        constexpr std::size_t at_most = 100;
        std::vector<context_snapshot> contexts;
        for (event_loop* const loop : loops) {
            contexts.push_back(take_snapshot(*loop, at_most));
        }
        if (loops.size() > 1 && std::ranges::any_of(contexts, [](const context_snapshot& one) {
                return can_continue(one);
            })) {
            return {};
        }
        text += to_text(contexts);
    } catch (const std::bad_alloc&) {
        text += "(no memory to list them)\n";
    }
    return text;
}

} // namespace

/// Called before a wait that only another thread can end. Returns true if there is no such thread
/// although the loop, or another loop of its runtime, has tasks; then on_deadlock has been called.
///
/// Outside of a runtime, threads are counted at the first such wait, and then at the second,
/// fourth, eighth and so on: if a thread has ended the earlier waits, one will probably end the
/// next.
///
/// In a runtime, every context must wait like this one, without a message, and stay in the same
/// wait for 50 ms, while there is no other thread. The snapshot to be printed is checked as well: a
/// task in it that waits for anything but other tasks shows that there is no deadlock. If several
/// contexts begin to wait at the same time, at least one of them sees that all of them wait.
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
        const auto sum_of_waits = [&]() -> std::uint64_t { // 0: one of them does not wait
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
        if (sum == 0 || !has_tasks || !has_only_threads(all->size())) {
            return false;
        }
        metrics_.ready.set(0); // part of the wait: the watchdog must not watch it
        constexpr int looks = 50;
        for (int i = 0; i < looks; ++i) {
            constexpr std::timespec a_while{0, 1'000'000};
            ::nanosleep(&a_while, nullptr);
            if (!inbox_.empty() || sum_of_waits() != sum) {
                return false;
            }
        }
        if (!has_only_threads(all->size()) || !round_.claim_deadlock_report()) {
            return false;
        }
    }
    std::vector<event_loop*> loops;
    for (std::size_t i = 0; all != nullptr && i < all->size(); ++i) {
        loops.push_back(&all->context(i).loop());
    }
    if (all == nullptr) {
        loops.push_back(this);
        own.store(reported, std::memory_order_relaxed);
    }
    const std::string text = describe_deadlock(loops);
    if (text.empty()) {
        return false;
    }
    if (options_.on_deadlock) {
        options_.on_deadlock(text);
    } else {
        std::fputs(text.c_str(), stderr);
    }
    return true;
}

} // namespace coil::detail
