// Metrics: snapshots of a context's counters, and their text form.

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/live_metrics.hpp>
#include <coil/context/metrics.hpp>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace coil {

namespace detail {

context_metrics live_metrics::snapshot() const noexcept {
    context_metrics m;
    m.enters = enters.get();
    m.submissions = submissions.get();
    m.completions = completions.get();
    m.parks = parks.get();
    m.spins = spins.get();
    m.spin_experiments = spin_experiments.get();
    m.spins_suppressed = spins_suppressed.get();
    m.sleeps_batched = sleeps_batched.get();
    m.napi_busy_polling = napi_busy_polling.get();
    m.wake_ups_sent = wake_ups_sent.get();
    m.wake_ups_elided = wake_ups_elided.get();
    m.refusals = refusals.get();
    m.overflows = overflows.get();
    m.cancels = cancels.get();
    m.cancel_retries = cancel_retries.get();
    m.unhandled_exceptions = unhandled_exceptions.get();
    m.tasks_started = tasks_started.get();
    m.back_pressure_waits = back_pressure_waits.get();
    m.tasks = tasks.get();
    m.in_flight = in_flight.get();
    m.timers = timers.get();
    m.ready = ready.get();
    m.long_turns = long_turns.get();
    m.await_loops = await_loops.get();
    m.late_resumptions = late_resumptions.get();
    m.late_timers = late_timers.get();
    return m;
}

context_metrics event_loop::metrics() const noexcept {
    context_metrics m = metrics_.snapshot();
    m.longest_turn =
        std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(meter_.longest_ns()));
    m.turn_length = meter_.length();
    m.ready_delay = probe_.delay();
    return m;
}

} // namespace detail

namespace {

using ull = unsigned long long;

[[gnu::format(printf, 2, 3)]] void append(std::string& out, const char* format, ...) {
    std::array<char, 256> text{};
    std::va_list args;
    va_start(args, format);
    const int n = std::vsnprintf(text.data(), text.size(), format, args);
    va_end(args);
    out.append(text.data(), std::min(static_cast<std::size_t>(n), text.size() - 1));
}

/// Formats a time with three digits and a unit.
std::string time_text(double ns) {
    constexpr std::array<std::pair<double, const char*>, 3> units{
        {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}}};
    std::string out;
    for (const auto& [size, name] : units) {
        if (ns >= size) {
            append(out, "%.3g %s", ns / size, name);
            return out;
        }
    }
    append(out, "%.3g ns", ns);
    return out;
}

void append_quantiles(std::string& out, const log2_histogram& times) {
    out += "mean " + time_text(times.mean());
    for (const auto& [q, name] : {std::pair{0.5, "median"}, {0.99, "99 %"}, {0.999, "99.9 %"}}) {
        out += std::string(", ") + name + " ≤ " + time_text(static_cast<double>(times.quantile(q)));
    }
}

} // namespace

std::string to_string(const context_metrics& m) {
    std::string out;
    append(out, "tasks: %llu (%llu started), ready: %llu, in flight: %llu, timers: %llu\n",
           ull{m.tasks}, ull{m.tasks_started}, ull{m.ready}, ull{m.in_flight}, ull{m.timers});
    append(out,
           "enters: %llu (%.2f SQEs, %.2f CQEs each), SQEs: %llu, CQEs: %llu, parks: %llu, "
           "spins: %llu%s%s\n",
           ull{m.enters}, m.submissions_per_enter(), m.completions_per_enter(), ull{m.submissions},
           ull{m.completions}, ull{m.parks}, ull{m.spins},
           m.sleeps_batched != 0     ? " (batched sleeps pay)"
           : m.spins_suppressed != 0 ? " (spinning does not pay)"
                                     : "",
           m.napi_busy_polling != 0 ? ", NAPI busy polling" : "");
    append(out, "wake-ups sent: %llu, elided: %llu\n", ull{m.wake_ups_sent},
           ull{m.wake_ups_elided});
    append(out, "back-pressure waits: %llu, refusals: %llu, overflows: %llu\n",
           ull{m.back_pressure_waits}, ull{m.refusals}, ull{m.overflows});
    append(out, "cancels: %llu, retries: %llu, unhandled exceptions: %llu\n", ull{m.cancels},
           ull{m.cancel_retries}, ull{m.unhandled_exceptions});
    append(out, "long turns: %llu (%llu await loops), late resumptions: %llu, late timers: %llu\n",
           ull{m.long_turns}, ull{m.await_loops}, ull{m.late_resumptions}, ull{m.late_timers});
    append(out, "turns: %llu, ", ull{m.turn_length.count()});
    append_quantiles(out, m.turn_length);
    out += ", longest " + time_text(static_cast<double>(m.longest_turn.count())) + ", total " +
           time_text(static_cast<double>(m.turn_length.sum())) + "\n";
    append(out, "ready delay: %llu samples, ", ull{m.ready_delay.count()});
    append_quantiles(out, m.ready_delay);
    out += "\n";
    return out;
}

} // namespace coil
