// The turns of a context as the watchdog sees them: which turn takes long, and how long it took.

#include "copy_memory.hpp"
#include "stall_description.hpp"
#include "stall_watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

namespace coil::detail {

namespace {

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

/// The loop counts without atomics; a copy that the kernel makes is not a data race.
std::uint32_t popped(const ready_queue& ready) noexcept {
    std::uint32_t number = 0;
    static_cast<void>(copy_memory(&ready.popped(), &number, sizeof number));
    return number;
}

/// How long a thread has been runnable without a processor so far. 0 if the kernel does not report
/// it.
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
    const char* const second = std::strchr(text, ' '); // after the time for which it has run
    return second != nullptr ? std::strtoll(second, nullptr, 10) : 0;
}

} // namespace

void stall_watchdog::look_at_turn(watched_run& run, std::int64_t now_ns) {
    const bool is_busy = run.metrics_.ready.get() != 0 && !run.has_left_;
    const std::uint64_t turns = run.metrics_.turns.get();
    // After a report on a turn, the turn's next coroutine is watched like another turn.
    const bool is_another = run.since_ns_ == 0 || turns != run.turns_ ||
                            (run.is_reported_ && popped(run.ready_) != run.popped_);
    if (run.is_reported_ && (!is_busy || is_another)) {
        run.is_reported_ = false;
        report_end(run);
    }
    if (!is_busy) {
        run.since_ns_ = 0;
    } else if (is_another) {
        run.turns_ = turns;
        run.since_ns_ = now_ns;
        run.earliest_ns_ = run.seen_ns_;
        run.starved_ns_ = starved_ns(run.thread_);
        run.slow_turns_ = run.meter_.slow_turns();
    } else if (const std::int64_t limit = limit_of(run.options_.watchdog);
               !run.is_reported_ && now_ns - run.since_ns_ >= limit &&
               now_ns - run.since_ns_ - (starved_ns(run.thread_) - run.starved_ns_) >= limit) {
        run.is_reported_ = true;
        run.popped_ = popped(run.ready_);
        run.last_long_turn_ns_ = now_ns;
        if (!is_traced()) {
            report_turn(run, now_ns);
        }
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
        // The signal ends sleeps such as usleep(), and so perhaps the turn, after the sample. If
        // the turn had ended before the sample, the stack does not belong to it and is not
        // reported.
        if (take_sample(run.thread_, run.ready_, run.metrics_.turns, first) &&
            first.turns == run.turns_) {
            if (is_same_turn() && awaits_in_a_loop(run, first) && is_same_turn()) {
                report.what = stall_report::kind::await_loop;
                ++run.metrics_.await_loops;
            }
            place = describe(first, report); // last: reading debug information may take long
        }
    }
    run.report_ = report;
    pass_on(std::move(report), place, run, now_ns, &run.reported_);
}

/// Uses the loop's measurement of the turn if it fits, which it does if nothing else in the turn
/// took long. Otherwise the duration is accurate to a tick.
void stall_watchdog::report_end(watched_run& run) {
    const reported_stall stall = std::exchange(run.reported_, {});
    if (stall.number == 0) { // nothing was reported, because a debugger is attached
        return;
    }
    stall_report report = std::exchange(run.report_, {});
    const auto measured = static_cast<std::int64_t>(run.meter_.slow_turn_ns(run.slow_turns_));
    const std::int64_t seen = report.duration.count();
    const std::int64_t now_ns = now_of_steady_clock();
    const std::int64_t until_now = std::max(now_ns - run.since_ns_, seen);
    const bool fits = measured >= seen && measured <= now_ns - run.earliest_ns_;
    report.duration = std::chrono::nanoseconds(fits ? measured : until_now);
    if (const auto now = places_.end(stall, std::move(report))) {
        deliver(*now, run.options_.watchdog, true);
    }
}

/// Whether the same coroutine still runs shortly after a sample and has begun many awaits.
bool stall_watchdog::awaits_in_a_loop(const watched_run& run, const stall_sample& first) noexcept {
    constexpr std::uint64_t many = 8;
    const std::timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
    stall_sample second;
    return take_sample(run.thread_, run.ready_, run.metrics_.turns, second) &&
           second.popped == first.popped && second.awaited - first.awaited >= many;
}

} // namespace coil::detail
