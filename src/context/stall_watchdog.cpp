#include "stall_watchdog.hpp"

#include "copy_memory.hpp"
#include "stall_description.hpp"
#include "thread_name.hpp"
#include "watched_pool.hpp"

#include <coil/base/signals_blocked.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace coil::detail {

namespace {

std::int64_t now_of_steady_clock() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

constexpr std::int64_t ms = 1'000'000;

std::int64_t limit_of(const watchdog_options& options) noexcept {
    return std::max<std::int64_t>(options.turn.count(), ms);
}

stall_report make_report(stall_report::kind what, std::string where, std::int64_t duration_ns) {
    stall_report report;
    report.what = what;
    report.where = std::move(where);
    report.duration = std::chrono::nanoseconds(duration_ns);
    return report;
}

/// Whether a debugger or another tracer controls this process.
bool is_traced() noexcept {
    char text[4096];
    std::FILE* const status = std::fopen("/proc/self/status", "re");
    if (status == nullptr) {
        return false;
    }
    const std::size_t size = std::fread(text, 1, sizeof text - 1, status);
    std::fclose(status);
    text[size] = '\0';
    const char* const tracer = std::strstr(text, "TracerPid:");
    return tracer != nullptr && std::strtol(tracer + std::strlen("TracerPid:"), nullptr, 10) != 0;
}

/// The loop counts without atomics; the kernel's copy is no data race.
std::uint32_t popped(const ready_queue& ready) noexcept {
    std::uint32_t number = 0;
    static_cast<void>(copy_memory(&ready.popped(), &number, sizeof number));
    return number;
}

/// How long a thread has waited for a processor so far, while it could have run. 0 if the kernel
/// does not tell.
std::int64_t starved_ns(::pid_t thread) noexcept {
    char text[128];
    std::snprintf(text, sizeof text, "/proc/self/task/%d/schedstat", thread);
    std::FILE* const file = std::fopen(text, "re");
    if (file == nullptr) {
        return 0;
    }
    const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    text[size] = '\0';
    const char* const second = std::strchr(text, ' '); // behind the time that it has run
    return second != nullptr ? std::strtoll(second, nullptr, 10) : 0;
}

} // namespace

// ---- the thread

stall_watchdog& stall_watchdog::instance() {
    static auto& only = *new stall_watchdog; // contexts may outlive main()
    return only;
}

stall_watchdog::stall_watchdog() {
    ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().reset_in_child(); });
    std::atexit([] { instance().stop(); });
}

/// In the child of a fork(), whose only thread holds the lock. The contexts of the list belong to
/// threads of the parent, or to this one, which starts another run() before it is watched again.
void stall_watchdog::reset_in_child() noexcept {
    for (watched_run* run = first_; run != nullptr; run = run->next_) {
        run->in_use_ = false;
    }
    first_ = nullptr;
    pools_ = nullptr;
    if (has_thread_.exchange(false)) {
        new (&thread_) std::thread; // there is nothing to join
        new (&changed_) std::condition_variable;
        new (&places_) stall_places; // the thread may have been changing it
        forget_sample();
    }
    mutex_.unlock();
}

/// Called with the lock held.
void stall_watchdog::start() noexcept {
    if (has_thread_ || stops_) {
        return;
    }
    const signals_blocked blocked;
    try {
        thread_ = std::thread([this] { run(); });
        has_thread_ = true;
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "coil: the watchdog has no thread: %s\n", error.what());
    }
}

/// At the exit of the process.
void stall_watchdog::stop() noexcept {
    {
        const std::scoped_lock lock(mutex_);
        stops_ = true;
        changed_.notify_all();
    }
    if (!has_thread_) {
        return;
    }
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach(); // a report's handler calls exit()
    } else {
        thread_.join();
    }
    has_thread_ = false;
}

void stall_watchdog::add(watched_run& run) noexcept {
    const std::scoped_lock lock(mutex_);
    start();
    run.number_ = ++last_number_;
    run.next_ = std::exchange(first_, &run);
    if (run.next_ == nullptr) {
        changed_.notify_all();
    }
}

void stall_watchdog::remove(watched_run& run) noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&run] { return !run.in_use_; });
    watched_run** link = &first_;
    while (*link != nullptr && *link != &run) { // in the child of a fork() it is not in the list
        link = &(*link)->next_;
    }
    if (*link != nullptr) {
        *link = run.next_;
    }
}

void stall_watchdog::add(watched_pool& pool) noexcept {
    const std::scoped_lock lock(mutex_);
    pool.next_ = std::exchange(pools_, &pool);
}

void stall_watchdog::remove(watched_pool& pool) noexcept {
    const std::scoped_lock lock(mutex_);
    watched_pool** link = &pools_;
    while (*link != nullptr && *link != &pool) {
        link = &(*link)->next_;
    }
    if (*link != nullptr) {
        *link = pool.next_;
    }
}

/// Called with the lock held.
std::int64_t stall_watchdog::tick_ns() const noexcept {
    std::int64_t least = 200 * ms;
    for (const watched_run* run = first_; run != nullptr; run = run->next_) {
        least = std::min(least, limit_of(run->options_.watchdog));
    }
    return std::max(least / 2, ms);
}

void stall_watchdog::run() noexcept {
    name_this_thread("coil-watchdog");
    std::unique_lock lock(mutex_);
    std::int64_t before = now_of_steady_clock();
    while (!stops_) {
        if (first_ == nullptr) {
            changed_.wait(lock);
            before = now_of_steady_clock();
            continue;
        }
        // Less often while all contexts wait.
        const std::int64_t tick = tick_ns() * (idle_ticks_ < 8 ? 1 : 4);
        changed_.wait_for(lock, std::chrono::nanoseconds(tick));
        const std::int64_t now = now_of_steady_clock();
        // The process was probably stopped: nothing can be said about the turns.
        const bool was_late = now - before > tick + 500 * ms;
        before = now;
        for (watched_pool* pool = pools_; pool != nullptr; pool = pool->next_) {
            look_at(*pool, now);
        }
        ++idle_ticks_;
        for (watched_run* run = first_; run != nullptr; run = run->next_) {
            if (is_idle(*run) && !places_.holds_back()) {
                run->since_ns_ = 0;
                continue;
            }
            idle_ticks_ = 0;
            run->since_ns_ = was_late && !run->is_reported_ ? 0 : run->since_ns_;
            run->in_use_ = true;
            lock.unlock();
            try {
                look_at(*run, now);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "coil: the watchdog cannot report: %s\n", error.what());
            }
            lock.lock();
            run->in_use_ = false;
            changed_.notify_all();
        }
        before = std::max(before, now_of_steady_clock() - tick); // its own work is no delay
    }
}

// ---- what it sees

/// Whether there is nothing to look at.
bool stall_watchdog::is_idle(const watched_run& run) noexcept {
    return run.metrics_.ready.get() == 0 && run.full_pools_.empty() &&
           run.metrics_.late_resumptions.get() == run.late_resumptions_ &&
           run.metrics_.late_timers.get() == run.late_timers_;
}

void stall_watchdog::look_at(watched_run& run, std::int64_t now_ns) {
    const bool is_busy = run.metrics_.ready.get() != 0;
    const std::uint64_t turns = run.metrics_.turns.get();
    if (!is_busy) {
        run.since_ns_ = 0;
    } else if (run.since_ns_ == 0 || turns != run.turns_ ||
               (run.is_reported_ && popped(run.ready_) != run.popped_)) {
        run.turns_ = turns;
        run.since_ns_ = now_ns;
        run.starved_ns_ = starved_ns(run.thread_);
        run.is_reported_ = false;
    } else if (const std::int64_t limit = limit_of(run.options_.watchdog);
               !run.is_reported_ && now_ns - run.since_ns_ >= limit &&
               now_ns - run.since_ns_ - (starved_ns(run.thread_) - run.starved_ns_) >= limit) {
        run.is_reported_ = true;
        run.popped_ = popped(run.ready_); // the next coroutine of this turn is another matter
        run.last_long_turn_ns_ = now_ns;
        if (!is_traced()) {
            report_turn(run, now_ns);
        }
    }
    look_at_delays(run, now_ns);
    for (stall_report& pool : std::exchange(run.full_pools_, {})) {
        const std::string place = pool.where + "/p";
        pass_on(std::move(pool), place, run, now_ns);
    }
    while (auto due =
               places_.take_due(run.number_, now_ns, run.options_.watchdog.interval.count())) {
        deliver(*due, run.options_.watchdog);
    }
}

void stall_watchdog::report_turn(watched_run& run, std::int64_t now_ns) {
    ++run.metrics_.long_turns;
    stall_report report =
        make_report(stall_report::kind::long_turn, name_of(run.options_), now_ns - run.since_ns_);
    std::string place = report.where;
    const auto is_same_turn = [&run] { return run.metrics_.turns.get() == run.turns_; };
    stall_sample first;
    if (run.options_.watchdog.interrupts && stall_signal() != 0) {
        const bool is_taken = take_sample(run.thread_, run.ready_, first);
        if (!is_same_turn()) {
            return; // it has just ended: there is nothing to show
        }
        if (is_taken) {
            place = describe(first, report);
            if (awaits_in_a_loop(run, first) && is_same_turn()) {
                report.what = stall_report::kind::await_loop;
                ++run.metrics_.await_loops;
            }
        }
    }
    pass_on(std::move(report), place, run, now_ns);
}

/// Whether the coroutine that runs has begun many awaits a little after a sample.
bool stall_watchdog::awaits_in_a_loop(const watched_run& run, const stall_sample& first) noexcept {
    constexpr std::uint64_t many = 8;
    const std::timespec pause{0, 2 * ms};
    ::nanosleep(&pause, nullptr);
    stall_sample second;
    return take_sample(run.thread_, run.ready_, second) && second.popped == first.popped &&
           second.awaited - first.awaited >= many;
}

void stall_watchdog::look_at_delays(watched_run& run, std::int64_t now_ns) {
    using kind = stall_report::kind;
    // A long turn, which was reported, delays everything behind it.
    const bool is_explained =
        run.last_long_turn_ns_ != 0 && now_ns - run.last_long_turn_ns_ < 2000 * ms;
    const auto look = [&](const counter& count, std::uint64_t& before, const counter& delay,
                          kind what) {
        const std::uint64_t times = count.get() - before;
        before += times;
        if (times > 0 && !is_explained) {
            stall_report report =
                make_report(what, name_of(run.options_), static_cast<std::int64_t>(delay.get()));
            const std::string place = report.where + (what == kind::late_timer ? "/t" : "/r");
            pass_on(std::move(report), place, run, now_ns);
        }
    };
    look(run.metrics_.late_resumptions, run.late_resumptions_, run.metrics_.last_ready_delay_ns,
         kind::late_resumption);
    look(run.metrics_.late_timers, run.late_timers_, run.metrics_.last_timer_delay_ns,
         kind::late_timer);
}

/// Called with the lock held: the pool may be destroyed otherwise. Its report goes to the handler
/// of a context.
void stall_watchdog::look_at(watched_pool& pool, std::int64_t now_ns) {
    const std::optional<bool> is_full = pool.is_full();
    if (!is_full) {
        return;
    }
    if (!*is_full) {
        pool.full_since_ns_ = 0;
    } else if (pool.full_since_ns_ == 0) {
        pool.full_since_ns_ = now_ns;
    } else if (const std::int64_t since = now_ns - pool.full_since_ns_;
               since >= first_->options_.watchdog.pool_delay.count()) {
        first_->full_pools_.push_back(
            make_report(stall_report::kind::full_pool, pool.name(), since));
        pool.full_since_ns_ = now_ns;
    }
}

void stall_watchdog::pass_on(stall_report&& report, const std::string& place,
                             const watched_run& run, std::int64_t now_ns) {
    if (const auto now = places_.note(std::move(report), place, run.number_, now_ns,
                                      run.options_.watchdog.interval.count())) {
        deliver(*now, run.options_.watchdog);
    }
}

void stall_watchdog::deliver(const stall_report& report, const watchdog_options& options) {
    if (options.on_report) {
        options.on_report(report);
    } else {
        std::fputs(to_string(report).c_str(), stderr);
    }
}

} // namespace coil::detail
