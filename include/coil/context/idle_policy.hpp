#pragma once

#include <coil/base/std_chrono.hpp>

namespace coil {

/// The behaviour of a context that has nothing to run.
///
///     io_context_options options;
///     options.idle = idle_policy::park();
///
/// `park()` sleeps in the kernel immediately: the least CPU time at low load.
///
/// `spin(limit)`, the default, polls for completions for up to `limit` before it parks, which saves
/// the cost of sleeping and waking when the next completion is near. After a spin that found
/// nothing, the context parks without spinning until several sleeps in a row turn out to have been
/// shorter than `limit`, so an idle process uses no CPU (guarantee G8). While completions arrive a
/// few at a time, it lets them accumulate for an eighth of `limit`.
///
/// A busy context also finds out by experiment how to wait for its present load. For about 2 ms it
/// waits in another way, and compares the costs: the wall-clock time plus one and a half times the
/// CPU time, per unit of work. The ways are:
///
/// - to spin: usually best for a lone client that waits for each reply;
/// - to sleep at once: usually best if a device or another thread limits the rate;
/// - to sleep until up to 16 completions have arrived, or until at least one has arrived and 20 µs
///   (`limit`, if that is less) have passed since the sleep began: usually best for many clients,
///   which spend time on each wake-up. It needs Linux 6.12.
///
/// If two experiments in a row favour another way, the context changes to it. Experiments are about
/// 20 ms apart, up to 4 s while they confirm the usual way. context_metrics::spin_experiments,
/// spins_suppressed and sleeps_batched show the decisions. On the epoll backend and in the
/// simulator the context sleeps at once, without experiments.
///
/// `batch(events, wait)` sleeps until `events` completions have arrived, or until at least one has
/// arrived and `wait` (at most a minute) has passed: the fewest wake-ups, with up to `wait` of
/// latency at low load. It never waits for more completions than are in flight: a lone operation is
/// not delayed. On kernels before 6.12, with fewer than two events, or without a wait, it is the
/// same as `park()`.
class idle_policy {
public:
    enum class kind { park, spin, batch };

    static constexpr idle_policy park() noexcept { return {kind::park, {}, 1}; }
    static constexpr idle_policy spin(std::chrono::nanoseconds limit) noexcept {
        return {kind::spin, limit, 1};
    }
    static constexpr idle_policy batch(unsigned events, std::chrono::microseconds wait) noexcept {
        if (events <= 1 || wait <= std::chrono::microseconds::zero()) {
            return park();
        }
        constexpr std::chrono::microseconds longest{60'000'000};
        return {kind::batch, wait < longest ? wait : longest, events};
    }

    [[nodiscard]] constexpr kind what() const noexcept { return kind_; }
    [[nodiscard]] constexpr std::chrono::nanoseconds limit() const noexcept { return limit_; }
    [[nodiscard]] constexpr unsigned events() const noexcept { return events_; }

private:
    constexpr idle_policy(kind k, std::chrono::nanoseconds limit, unsigned events) noexcept
        : kind_(k), limit_(limit), events_(events) {}

    kind kind_;
    std::chrono::nanoseconds limit_;
    unsigned events_;
};

} // namespace coil
