#include "prometheus_text.hpp"

#include <coil/context/prometheus.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace coil {

namespace {

struct number {
    detail::metric_family what;
    std::string_view type;
    std::uint64_t context_metrics::* value;
};

constexpr std::string_view counter = "counter";
constexpr std::string_view gauge = "gauge";

// clang-format off
constexpr std::array numbers{
    number{{"coil_tasks", "Top-level tasks that have not ended."}, gauge, &context_metrics::tasks},
    number{{"coil_ready", "Coroutines that were ready when the turn began."}, gauge, &context_metrics::ready},
    number{{"coil_in_flight", "Submitted entries whose completion is to come."}, gauge, &context_metrics::in_flight},
    number{{"coil_timers", "Armed timers."}, gauge, &context_metrics::timers},
    number{{"coil_spins_suppressed", "1 while spinning before a sleep does not pay."}, gauge, &context_metrics::spins_suppressed},
    number{{"coil_sleeps_batched", "1 while sleeps wait for several completions, because that pays."}, gauge, &context_metrics::sleeps_batched},
    number{{"coil_napi_busy_polling", "1 if waits poll network devices."}, gauge, &context_metrics::napi_busy_polling},
    number{{"coil_tasks_started_total", "Top-level tasks that were started."}, counter, &context_metrics::tasks_started},
    number{{"coil_enters_total", "io_uring_enter system calls."}, counter, &context_metrics::enters},
    number{{"coil_submissions_total", "Submission queue entries handed to the kernel."}, counter, &context_metrics::submissions},
    number{{"coil_completions_total", "Completion queue entries received."}, counter, &context_metrics::completions},
    number{{"coil_parks_total", "Times the context slept in the kernel."}, counter, &context_metrics::parks},
    number{{"coil_spins_total", "Times the context looked for work before sleeping."}, counter, &context_metrics::spins},
    number{{"coil_spin_experiments_total", "Comparisons of two ways of waiting."}, counter, &context_metrics::spin_experiments},
    number{{"coil_wake_ups_sent_total", "Sleeps that another thread ended by a system call."}, counter, &context_metrics::wake_ups_sent},
    number{{"coil_wake_ups_elided_total", "Messages of other threads that needed no system call."}, counter, &context_metrics::wake_ups_elided},
    number{{"coil_back_pressure_waits_total", "Operations that waited for room in the queue."}, counter, &context_metrics::back_pressure_waits},
    number{{"coil_refusals_total", "Enters that the kernel refused for a time."}, counter, &context_metrics::refusals},
    number{{"coil_overflows_total", "Enters after which completions waited for room."}, counter, &context_metrics::overflows},
    number{{"coil_cancels_total", "Requests to cancel an operation."}, counter, &context_metrics::cancels},
    number{{"coil_cancel_retries_total", "Cancellation requests that were repeated."}, counter, &context_metrics::cancel_retries},
    number{{"coil_unhandled_exceptions_total", "Exceptions of tasks that are not joined."}, counter, &context_metrics::unhandled_exceptions},
    number{{"coil_long_turns_total", "Turns that the watchdog found to be too long."}, counter, &context_metrics::long_turns},
    number{{"coil_await_loops_total", "Long turns by awaits that never suspended."}, counter, &context_metrics::await_loops},
    number{{"coil_late_resumptions_total", "Samples of the ready delay above the limit."}, counter, &context_metrics::late_resumptions},
    number{{"coil_late_timers_total", "Times that timers fired later than the limit."}, counter, &context_metrics::late_timers},
};
// clang-format on

constexpr detail::metric_family longest_turn{"coil_longest_turn_seconds",
                                             "The longest turn so far."};

struct distribution {
    detail::metric_family what;
    log2_histogram context_metrics::* value;
};

constexpr std::array distributions{
    distribution{{"coil_turn_seconds", "Time that a turn of the loop took."},
                 &context_metrics::turn_length},
    distribution{{"coil_ready_delay_seconds", "Time that a ready coroutine waited (sampled)."},
                 &context_metrics::ready_delay},
};

// 64 ns to 17 s, the same at every scrape: buckets that come and go break quantiles over time.
constexpr std::size_t first_bucket = 6;
constexpr std::size_t last_bucket = 34;

std::string seconds(std::uint64_t ns) {
    std::string fraction = std::to_string(ns % 1'000'000'000);
    fraction.insert(0, 9 - fraction.size(), '0');
    return std::to_string(ns / 1'000'000'000) + "." + fraction;
}

std::string bound_text(std::size_t bucket) {
    std::array<char, 32> text{};
    const double bound = static_cast<double>(log2_histogram::upper_bound(bucket)) / 1e9;
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), bound).ptr};
}

void write_distribution(std::string& out, std::string_view name, const std::string& labels,
                        const log2_histogram& times) {
    const std::string before = labels.empty() ? "le=\"" : labels + ",le=\"";
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i <= last_bucket; ++i) {
        so_far += times.bucket(i);
        if (i >= first_bucket) {
            detail::write_sample(out, name, "_bucket", before + bound_text(i) + '"',
                                 std::to_string(so_far));
        }
    }
    const std::string all = std::to_string(times.count());
    detail::write_sample(out, name, "_bucket", before + "+Inf\"", all);
    detail::write_sample(out, name, "_sum", labels, seconds(times.sum()));
    detail::write_sample(out, name, "_count", labels, all);
}

} // namespace

void write_prometheus(std::string& out, std::span<const labelled_metrics> contexts) {
    std::vector<std::pair<const context_metrics*, std::string>> all;
    all.reserve(contexts.size());
    for (const labelled_metrics& one : contexts) {
        all.emplace_back(&one.metrics, detail::label_text(one.labels));
    }
    for (const number& n : numbers) {
        detail::write_header(out, n.what, n.type);
        for (const auto& [metrics, labels] : all) {
            detail::write_sample(out, n.what.name, "", labels, std::to_string(metrics->*n.value));
        }
    }
    detail::write_header(out, longest_turn, gauge);
    for (const auto& [metrics, labels] : all) {
        const auto ns = static_cast<std::uint64_t>(metrics->longest_turn.count());
        detail::write_sample(out, longest_turn.name, "", labels, seconds(ns));
    }
    for (const distribution& d : distributions) {
        detail::write_header(out, d.what, "histogram");
        for (const auto& [metrics, labels] : all) {
            write_distribution(out, d.what.name, labels, metrics->*d.value);
        }
    }
}

void write_prometheus(std::string& out, const context_metrics& metrics,
                      std::vector<metric_label> labels) {
    const labelled_metrics only{metrics, std::move(labels)};
    write_prometheus(out, std::span(&only, 1));
}

} // namespace coil
