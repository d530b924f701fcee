#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/minmax.hpp>
#include <coil/context/detail/idle_experiment.hpp>
#include <coil/context/detail/idle_history.hpp>
#include <coil/context/detail/inbox.hpp>
#include <coil/context/detail/live_metrics.hpp>
#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/detail/turn_meter.hpp>
#include <coil/context/detail/wake_descriptor.hpp>

#include <cstdint>

namespace coil::detail {

/// How an event loop waits when nothing is ready: it spins, lets completions coalesce, or parks
/// (sleeps in the kernel until a completion, a deadline or another thread wakes it). Owner thread.
///
/// A sleep is announced in the inbox before it begins, so that a thread which posts from then on
/// signals the wake-up descriptor, whose read is in flight:
///
///     awake ──announce()──▶ parked ──sleep()──▶ parked ──unpark()──▶ awake
///       ▲                     └────────────unpark()───────────────────┘
class parker {
public:
    parker(loop_ring& ring, inbox& posts, turn_meter& meter, live_metrics& metrics,
           idle_policy policy, std::chrono::nanoseconds timer_slack)
        : ring_(ring), inbox_(posts), meter_(meter), metrics_(metrics),
          history_(policy, timer_slack) {}
    parker(const parker&) = delete;
    parker& operator=(const parker&) = delete;

    [[nodiscard]] idle_history& history() noexcept { return history_; }
    [[nodiscard]] wake_descriptor& descriptor() noexcept { return descriptor_; }
    [[nodiscard]] const wake_descriptor& descriptor() const noexcept { return descriptor_; }
    /// The number of sleeps that a post has ended since the last call.
    [[nodiscard]] std::uint64_t take_woken_by_posts() noexcept {
        return coil::detail::exchange(woken_by_posts_, 0);
    }

    /// Called before the loop continues without waiting: reads the clock if the meter needs a
    /// reading.
    void lap_if_due() noexcept {
        if (meter_.due()) {
            const std::int64_t now = ring_.now_ns();
            meter_.lap(now);
            experiment_.on_busy(now);
        }
    }

    /// Waits for more completions if they have recently arrived a few at a time, and `due`, the
    /// number of those that may still come, is more than one.
    void coalesce(std::uint32_t due) noexcept {
        if (due > 1 && history_.should_coalesce()) {
            wait_for_more();
        } else {
            lap_if_due();
        }
    }
    /// Counts an idle period. Returns whether the policy and the experiments allow a spin.
    [[nodiscard]] bool may_spin() noexcept {
        if (history_.policy().what() != idle_policy::kind::spin) {
            return false;
        }
        if (experiment_.count_idle()) [[unlikely]] {
            check_experiment();
        }
        return experiment_.way() == idle_way::spin;
    }
    /// Whether note_transferred() is to be called.
    [[nodiscard]] bool counts_bytes() const noexcept { return experiment_.is_measuring(); }
    void note_transferred(std::uint64_t bytes) noexcept { transferred_ += bytes; }
    /// A run begins, perhaps on another thread.
    void begin_run() noexcept { experiment_.abandon(ring_.now_ns()); }
    /// Spins until there is something to do, until `until_ns`, or for the time that the policy
    /// allows. Returns whether there is something to do.
    [[nodiscard]] bool spin(std::int64_t until_ns) noexcept;

    /// Called before a sleep until `until_ns` if many frames were freed (frame_cache_overflowed):
    /// gives their memory back if 100 ms have passed since the first such call. Returns the time by
    /// which the sleep must end.
    [[nodiscard, gnu::noinline, gnu::cold]] std::int64_t
    trim_after_peak(std::int64_t until_ns) noexcept;

    /// Announces a sleep. Returns false if a message was posted, or if the read of the wake-up
    /// descriptor could not be submitted, so that no thread could end the sleep.
    [[nodiscard]] bool announce() noexcept {
        descriptor_.watch(ring_);
        return descriptor_.is_watched() && inbox_.try_park();
    }
    /// After announce(): sleeps until a completion, a message or `until_ns` (timer_wheel::never:
    /// without a deadline), and unparks. With a batch policy, or if the experiments favour batches,
    /// it waits for several completions, but not for more than `due`, because what is in flight
    /// cannot post more.
    void sleep(std::int64_t until_ns, std::uint32_t due) noexcept;
    /// Called when the announced sleep is over, or does not take place.
    void unpark() noexcept {
        if (!inbox_.unpark()) {
            descriptor_.expect_signal();
            note_wake_up();
        }
    }
    /// Another thread has ended the sleep, by a post or by a signal.
    void note_wake_up() noexcept {
        ++metrics_.wake_ups_sent;
        woken_by_posts_ += inbox_.empty() ? 0 : 1;
    }

private:
    void wait_for_more() noexcept;
    void check_experiment() noexcept;
    [[nodiscard]] bool has_events() noexcept;
    [[nodiscard]] bool spin_once() noexcept;
    /// Whether the kernel can batch the sleeps of a policy that spins. It counts microseconds.
    [[nodiscard]] bool can_batch() const noexcept {
        return ring_.has_min_wait() && history_.batch_ns() >= 1'000;
    }

    loop_ring& ring_;
    inbox& inbox_;
    turn_meter& meter_;
    live_metrics& metrics_;
    idle_history history_;
    idle_experiment experiment_{
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this) >> 6), can_batch()};
    std::uint64_t transferred_ = 0; // bytes, while counts_bytes()
    wake_descriptor descriptor_;
    std::uint64_t woken_by_posts_ = 0;
    std::int64_t trim_due_ns_ = 0; // after a peak: when the frame cache is returned
};

/// Always inlined, like loop_ring::enter().
[[gnu::always_inline]] inline void parker::sleep(std::int64_t until_ns,
                                                 std::uint32_t due) noexcept {
    const bool timed = until_ns != timer_wheel::never;
    const std::int64_t begin = ring_.now_ns();
    meter_.lap(begin);
    const std::int64_t rest = timed ? max<std::int64_t>(until_ns - begin, 0) : 0;
    uring::timespec timeout{};
    if (timed) {
        timeout.tv_sec = rest / 1'000'000'000;
        timeout.tv_nsec = rest % 1'000'000'000;
    }
    ++metrics_.parks;
    const std::uint32_t events =
        min<std::uint32_t>(history_.batch_events(experiment_.batches()), due);
    if (events > 1 && ring_.has_min_wait()) {
        // The kernel honours the timeout only after the minimum.
        const std::int64_t least = min(history_.batch_ns(), timed ? rest : INT64_MAX);
        ring_.enter(events, timed ? &timeout : nullptr, static_cast<unsigned>(least / 1000));
    } else {
        ring_.enter(1, timed ? &timeout : nullptr, 0);
    }
    unpark();
    const std::int64_t end = ring_.now_ns();
    meter_.resume(end);
    experiment_.on_sleep(begin, end);
    history_.on_slept(begin, end, until_ns, experiment_.way() != idle_way::spin);
}

} // namespace coil::detail
