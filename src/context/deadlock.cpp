#include "deadlock.hpp"

#include "admin_server.hpp"
#include "dump_signal.hpp"
#include "stall_watchdog.hpp"
#include "waiting_threads.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/options.hpp>
#include <coil/context/runtime.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace coil::detail {

namespace {

constexpr std::int64_t first_interval_ns = 50'000'000;

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

} // namespace

/// The threads that wait for other threads, and the loops among them.
class deadlock_detection::census {
public:
    /// Called by a loop that has announced its own wait.
    census() noexcept {
        all_wait_ = event_loop::for_each_running(&add, this);
        if (const auto others = all_wait_ ? waiting_threads::all() : std::nullopt) {
            threads_ += others->threads;
            changes_ += others->changes;
        } else {
            all_wait_ = false;
        }
    }
    [[nodiscard]] bool all_wait() const noexcept { return all_wait_; }
    [[nodiscard]] std::size_t threads() const noexcept { return threads_; }
    bool operator==(const census& other) const noexcept = default;

private:
    static bool add(event_loop& loop, void* argument) noexcept {
        auto& to = *static_cast<census*>(argument);
        // the inbox first: see lonely_wait_count
        const bool has_message = !loop.inbox_.holds_nothing();
        const std::uint32_t waits = lonely_waits(loop);
        if (!lonely_wait_count::is_wait(waits) && nested_run::is_here(loop)) {
            return true; // one of its tasks has called run() of the loop that takes the census
        }
        ++to.threads_;
        to.changes_ += waits;
        return !has_message && lonely_wait_count::is_wait(waits);
    }

    bool all_wait_ = false;
    std::size_t threads_ = 0;
    std::uint64_t changes_ = 0;
};

namespace {
constinit thread_local const deadlock_detection::nested_run* innermost_run = nullptr;
} // namespace

deadlock_detection::nested_run::nested_run(const event_loop& loop) noexcept
    : loop_(loop), outer_(std::exchange(innermost_run, this)) {}

deadlock_detection::nested_run::~nested_run() { innermost_run = outer_; }

bool deadlock_detection::nested_run::is_here(const event_loop& loop) noexcept {
    for (const nested_run* run = innermost_run; run != nullptr; run = run->outer_) {
        if (&run->loop_ == &loop) {
            return true;
        }
    }
    return false;
}

std::uint32_t deadlock_detection::lonely_waits(const event_loop& loop) noexcept {
    return loop.signals_.lonely_waits.value();
}

/// Whether a wait that only another thread can end is to be checked now; called if there are tasks.
/// The first, second, fourth, eighth wait and so on are checked when they begin, and in a runtime
/// every wait: if other threads ended the earlier waits, one will probably end the next. Every wait
/// is checked again at growing intervals (50 ms, 100 ms, 200 ms, ...), because the other threads
/// may begin to wait later.
bool deadlock_detection::check_is_due(event_loop& loop) noexcept {
    deadlock_checks& checks = loop.signals_.checks;
    if (checks.interval_ns == 0) {
        checks.interval_ns = first_interval_ns;
        checks.due_ns = 0;
        return std::has_single_bit(++checks.waits) || loop.round_.takes_part();
    }
    if (checks.due_ns == 0 || loop.now_ns() < checks.due_ns) {
        return false;
    }
    checks.interval_ns *= 2;
    checks.due_ns = 0;
    return true;
}

/// The clock is read here, not when the wait begins: most waits end before the loop sleeps.
std::int64_t deadlock_detection::next_check_ns(event_loop& loop) noexcept {
    deadlock_checks& checks = loop.signals_.checks;
    if (checks.is_reported || loop.tasks_.empty() ||
        !lonely_wait_count::is_wait(lonely_waits(loop))) {
        return INT64_MAX;
    }
    if (checks.due_ns == 0) {
        checks.due_ns = loop.now_ns() + checks.interval_ns;
    }
    return checks.due_ns;
}

/// Whether no thread of the process could wake a task: each of them runs a loop that waits, or
/// waits for a loop, or is an idle thread of a pool.
///
/// The threads are counted twice. If the second count equals the first, all of them waited at the
/// moment between the two: a thread that was woken, or a message, would show as a change. If there
/// are several threads, this state must also last for 50 ms without a message to this loop.
bool deadlock_detection::finds_one(event_loop& loop) {
    const census first;
    if (!first.all_wait() || !has_only_threads(first.threads())) {
        return false;
    }
    if (first.threads() > 1) {
        loop.metrics_.ready.set(0); // part of the wait: the watchdog must not watch it
        constexpr int looks = 50;
        for (int i = 0; i < looks; ++i) {
            constexpr std::timespec a_while{0, 1'000'000};
            ::nanosleep(&a_while, nullptr);
            if (!loop.inbox_.empty() || census() != first) {
                return false;
            }
        }
    }
    return census() == first && has_only_threads(first.threads());
}

bool deadlock_detection::nothing_runs() noexcept {
    const census first;
    const auto is_idle = [](event_loop& loop, void*) noexcept { return loop.load() == 0; };
    return first.all_wait() && event_loop::for_each_running(is_idle, nullptr) &&
           has_only_threads(first.threads()) && census() == first;
}

/// Whether every context of the runtime waits as well. Most waits in a runtime do not pass this
/// check, which takes no lock.
bool deadlock_detection::all_wait(runtime& all) noexcept {
    for (std::size_t i = 0; i < all.size(); ++i) {
        const event_loop& one = all.context(i).loop();
        if (!lonely_wait_count::is_wait(lonely_waits(one)) && one.is_running()) {
            return false;
        }
    }
    return true;
}

/// The contexts of a runtime report together, once. The snapshot to be printed is checked as well,
/// unless the process has one thread: a task in it that waits for anything but other tasks shows
/// that there is no deadlock. If several contexts begin to wait at the same time, at least one of
/// them sees that all of them wait.
bool deadlock_detection::reports(event_loop& loop) {
    lonely_wait_count& own = loop.signals_.lonely_waits;
    if (loop.submissions_.has_queued() || loop.cancellations_.has_retries()) {
        return false;
    }
    own.begin();
    runtime* const all = loop.round_.takes_part() ? loop.round_.owner() : nullptr;
    const std::size_t size = all == nullptr ? 1 : all->size();
    const auto at = [&](std::size_t i) { return all == nullptr ? &loop : &all->context(i).loop(); };
    bool has_tasks = false;
    for (std::size_t i = 0; i < size; ++i) {
        has_tasks = has_tasks || at(i)->load() > 0;
    }
    if (!has_tasks || loop.signals_.checks.is_reported || !check_is_due(loop) ||
        (all != nullptr && !all_wait(*all)) || !finds_one(loop) ||
        (all != nullptr && !loop.round_.claim_deadlock_report())) {
        return false;
    }
    std::vector<event_loop*> loops;
    loops.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
        loops.push_back(at(i));
    }
    const std::string text = describe_deadlock(loops, !has_only_threads(1));
    if (text.empty()) {
        return false;
    }
    loop.signals_.checks.is_reported = true;
    own.end(); // the handler may wake other contexts
    if (loop.options_.on_deadlock) {
        loop.options_.on_deadlock(text);
    } else {
        std::fputs(text.c_str(), stderr);
    }
    return true;
}

} // namespace coil::detail
