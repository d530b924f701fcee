#include "stall_watchdog.hpp"

#include "copy_memory.hpp"
#include "stall_description.hpp"
#include "thread_name.hpp"
#include "watched_pool.hpp"

#include <coil/base/service_thread_start.hpp>

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

constexpr std::int64_t ms = 1'000'000;

} // namespace

// ---- the thread

stall_watchdog& stall_watchdog::instance() {
    static auto& only = *new stall_watchdog; // contexts may outlive main()
    return only;
}

namespace {
/// Created before there are other threads. Otherwise the child of a fork() during the
/// initialisation would wait for ever for a thread that it does not have.
[[maybe_unused]] const stall_watchdog& made_at_start = stall_watchdog::instance();
} // namespace

stall_watchdog::stall_watchdog() {
    ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().reset_in_child(); });
}

/// Called in the child of a fork(), whose only thread holds the lock. The contexts in the list
/// belong to threads of the parent, or to this thread, which starts another run() before it is
/// watched again.
void stall_watchdog::reset_in_child() noexcept {
    for (watched_run* run = first_; run != nullptr; run = run->next_) {
        run->in_use_ = false;
        run->is_reported_ = false;
    }
    first_ = nullptr;
    pools_ = nullptr;
    if (has_thread_.exchange(false)) {
        new (&thread_) std::thread; // there is nothing to join
        new (&changed_) std::condition_variable;
        forget_sample();
    }
    new (&places_) stall_places; // other threads may have been using it
    mutex_.unlock();
}

/// Called with the lock held.
void stall_watchdog::start() noexcept {
    if (has_thread_ || stops_) {
        return;
    }
    const service_thread_start inherited;
    try {
        thread_ = std::thread([this] { run(); });
        has_thread_ = true;
        // Ends the thread before static objects are destroyed that existed before it, such as the
        // state of handlers.
        static const int registered = std::atexit([] { instance().stop(); });
        static_cast<void>(registered);
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "coil: the watchdog has no thread: %s\n", error.what());
    }
}

/// Called when the process exits.
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
    run.seen_ns_ = now_of_steady_clock();
    run.next_ = std::exchange(first_, &run);
    if (run.next_ == nullptr) {
        changed_.notify_all();
    }
}

void stall_watchdog::remove(watched_run& run) noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&run] { return !run.in_use_; });
    if (run.is_reported_ && has_thread_) { // the end of its last turn is still to be reported
        run.has_left_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this, &run] { return !run.in_use_ && (!run.is_reported_ || stops_); });
    }
    watched_run** link = &first_;
    while (*link != nullptr && *link != &run) { // in the child of a fork() it is not in the list
        link = &(*link)->next_;
    }
    if (*link != nullptr) {
        *link = run.next_;
    }
}

/// The pool gets the smallest free number of its name: a pool that replaces another one continues
/// its series of metrics.
void stall_watchdog::add(watched_pool& pool) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto has_number = [&pool](const watched_pool& other) {
        return other.number_ == pool.number_ && other.name() == pool.name();
    };
    pool.number_ = 1;
    for (const watched_pool* other = pools_; other != nullptr;) {
        if (has_number(*other)) {
            ++pool.number_;
            other = pools_;
        } else {
            other = other->next_;
        }
    }
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
        if (first_ == nullptr) {
            continue; // the last context has ended: there is no handler for a report
        }
        const std::int64_t now = now_of_steady_clock();
        // The process was probably stopped, so nothing is known about the turns.
        const bool was_late = now - before > tick + 500 * ms;
        before = now;
        for (watched_pool* pool = pools_; pool != nullptr; pool = pool->next_) {
            look_at(*pool, now);
        }
        ++idle_ticks_;
        for (watched_run* run = first_; run != nullptr; run = run->next_) {
            if (is_idle(*run) && !places_.holds_back() && !run->is_reported_) {
                run->since_ns_ = 0;
                run->seen_ns_ = now;
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
            run->seen_ns_ = now;
            changed_.notify_all();
        }
        before = std::max(before, now_of_steady_clock() - tick); // its own work is not a delay
    }
}

// ---- looking at contexts and pools

/// Whether there is nothing to look at.
bool stall_watchdog::is_idle(const watched_run& run) noexcept {
    return run.metrics_.ready.get() == 0 && run.full_pools_.empty() &&
           run.metrics_.late_resumptions.get() == run.late_resumptions_ &&
           run.metrics_.late_timers.get() == run.late_timers_;
}

void stall_watchdog::look_at(watched_run& run, std::int64_t now_ns) {
    look_at_turn(run, now_ns);
    look_at_delays(run, now_ns);
    for (stall_report& pool : std::exchange(run.full_pools_, {})) {
        const std::string place = pool.where + "/p";
        pass_on(std::move(pool), place, run, now_ns);
    }
    while (auto due = places_.take_due(run.number_, now_ns, run.options_.watchdog.interval.count(),
                                       run.reported_)) {
        deliver(*due, run.options_.watchdog);
    }
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

/// Called with the lock held, which keeps the pool from being destroyed. The pool's report goes to
/// the handler of a context.
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
        ++pool.full_reports_;
        first_->full_pools_.push_back(
            make_report(stall_report::kind::full_pool, pool.name(), since));
        pool.full_since_ns_ = now_ns;
    }
}

void stall_watchdog::pass_on(stall_report&& report, const std::string& place,
                             const watched_run& run, std::int64_t now_ns, reported_stall* to) {
    if (const auto now = places_.note(std::move(report), place, run.number_, now_ns,
                                      run.options_.watchdog.interval.count(), to)) {
        deliver(*now, run.options_.watchdog);
    }
}

void stall_watchdog::deliver(const stall_report& report, const watchdog_options& options,
                             bool is_second) {
    if (options.on_report) {
        options.on_report(report);
    } else {
        std::fputs((is_second ? ending_line(report) : to_string(report)).c_str(), stderr);
    }
}

// ---- queries

std::string stall_watchdog::stalls_json() const {
    return to_json(places_.all(), has_thread_, now_of_steady_clock());
}

std::vector<pool_figures> stall_watchdog::pools() {
    // A pool's threads hold its lock only for moments, but this thread must not wait for it: see
    // watched_pool::is_full().
    constexpr int most_attempts = 1000;
    std::vector<pool_figures> all;
    for (int i = 0; i < most_attempts; ++i) {
        {
            const std::scoped_lock lock(mutex_);
            all.clear();
            bool is_complete = true;
            for (const watched_pool* pool = pools_; pool != nullptr; pool = pool->next_) {
                std::optional<pool_figures> figures = pool->figures();
                is_complete = is_complete && figures;
                if (figures) {
                    figures->number = pool->number_;
                    all.push_back(std::move(*figures));
                }
            }
            if (is_complete) {
                break;
            }
        }
        std::this_thread::yield();
    }
    return all;
}

} // namespace coil::detail
