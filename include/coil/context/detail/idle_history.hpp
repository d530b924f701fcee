#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/minmax.hpp>
#include <coil/context/detail/timer_wheel.hpp>
#include <coil/context/idle_policy.hpp>

#include <cstdint>

namespace coil::detail {

/// The recent cost and benefit of idling, from which an event loop decides whether to spin, to
/// coalesce completions or to park. Arithmetic only: it reads no clock.
class idle_history {
public:
    idle_history(idle_policy policy, std::chrono::nanoseconds timer_slack) noexcept
        : policy_(policy),
          slack_ns_(min(max<std::int64_t>(timer_slack.count(), 0), most_slack_ns)) {}

    [[nodiscard]] const idle_policy& policy() const noexcept { return policy_; }
    /// The longest time by which wake_up_for() delays a timer.
    [[nodiscard]] std::int64_t timer_slack_ns() const noexcept { return slack_ns_; }

    /// Whether to spin before parking. With nothing in flight only a timer or another thread can
    /// create work, so spinning pays only if other threads do.
    [[nodiscard]] bool should_spin(bool in_flight) const noexcept {
        return policy_.what() == idle_policy::kind::spin && spinning_pays_ &&
               (in_flight || inbox_pays_);
    }
    /// A spin found nothing. The loop parks until several sleeps in a row were short: if short and
    /// long idle periods alternate, half of the spins would be fruitless.
    void on_fruitless_spin() noexcept {
        spinning_pays_ = false;
        inbox_pays_ = false;
        after_fruitless_spin_ = true;
        short_sleeps_ = 0;
        needed_short_sleeps_ = min(2 * needed_short_sleeps_, most_needed_short_sleeps);
    }
    void on_fruitful_spin() noexcept { needed_short_sleeps_ = max(needed_short_sleeps_ / 2, 1); }
    void on_inbox_delivered() noexcept { inbox_pays_ = true; }

    /// A poll found `completions` > 0.
    void on_polled(std::int32_t completions) noexcept {
        found_per_poll_ += (completions * one - found_per_poll_) / 8;
    }
    /// Whether completions arrive several at a time, but not so many that the cost of a system call
    /// is negligible. Never true for a single client, which would only wait longer.
    [[nodiscard]] bool should_coalesce() const noexcept {
        constexpr std::int32_t least = one + one / 4;
        constexpr std::int32_t most = 16 * one;
        return found_per_poll_ >= least && found_per_poll_ <= most;
    }
    /// A fraction of what the policy would spend on waiting for one completion.
    [[nodiscard]] std::int64_t coalesce_ns() const noexcept { return policy_.limit().count() / 8; }

    /// The number of completions that a sleep waits for. `batches`: the experiments of a policy
    /// that spins favour batches.
    [[nodiscard]] std::uint32_t batch_events(bool batches) const noexcept {
        constexpr std::uint32_t several = 16;
        return batches ? several : policy_.events();
    }
    /// How long a sleep waits for that number, if at least one completion has arrived. Enough to
    /// accumulate a few of those that are worth it, and less than most clients notice.
    [[nodiscard]] std::int64_t batch_ns() const noexcept {
        constexpr std::int64_t most_ns = 20'000;
        const std::int64_t limit = policy_.limit().count();
        return policy_.what() == idle_policy::kind::spin ? min(limit, most_ns) : limit;
    }

    /// A sleep lasted from `begin` to `end`; a timer would have ended it at `until`. `imposed`: the
    /// loop did not decide by this history to sleep without a spin.
    void on_slept(std::int64_t begin, std::int64_t end, std::int64_t until,
                  bool imposed = false) noexcept {
        if (policy_.what() == idle_policy::kind::spin) {
            // The idle period of a sleep after a spin includes the spin.
            const bool follows_spin = exchange(after_fruitless_spin_, false);
            // Waking up takes time as well. It may be longer than the idle period, and then long
            // sleeps would not show that a spin would have been short.
            const std::int64_t limit = policy_.limit().count() * (imposed ? 4 : 1);
            const bool was_short = !follows_spin && end - begin < limit;
            short_sleeps_ = was_short ? min(short_sleeps_ + 1, most_needed_short_sleeps) : 0;
            spinning_pays_ = short_sleeps_ >= needed_short_sleeps_;
        }
        if (until != timer_wheel::never && end >= until) {
            woken_by_timer_ = true;
            last_timer_ns_ = until;
        }
    }
    /// Called after due timers have fired, once in each turn.
    void on_timers_fired(std::int32_t count) noexcept {
        if (exchange(woken_by_timer_, false)) {
            fired_before_ = exchange(fired_last_, count);
        }
    }
    /// When to wake up for a timer that is due at `timer`: then, or later if the last wake-up by a
    /// timer was not long ago. Being woken costs far more than firing a timer, so dense timers
    /// share their wake-ups.
    [[nodiscard]] std::int64_t wake_up_for(std::int64_t timer) const noexcept {
        // At the start of a tick, because no timer becomes due between two starts.
        return max(timer, timer_wheel::start_of_tick(last_timer_ns_ + timer_gap_ns()));
    }

private:
    static constexpr std::int32_t one = 256;
    static constexpr int most_needed_short_sleeps = 64;
    static constexpr std::int64_t most_slack_ns = 3'600'000'000'000; // sums do not overflow

    /// The minimum time between two wake-ups by timers. The whole slack is used only if several
    /// timers fired at each of the last two: a coroutine that sleeps for short times should not
    /// wait much longer because many others are woken together now and then.
    [[nodiscard]] std::int64_t timer_gap_ns() const noexcept {
        constexpr std::int64_t least_ns = 100'000;
        constexpr std::int32_t several = 4;
        return min(fired_last_, fired_before_) >= several ? slack_ns_ : min(slack_ns_, least_ns);
    }

    idle_policy policy_;
    bool spinning_pays_ = true;
    bool after_fruitless_spin_ = false; // the next sleep belongs to the same idle period
    int short_sleeps_ = 0;              // in a row
    int needed_short_sleeps_ = 1;       // until spinning pays again
    bool inbox_pays_ = false;           // a message has arrived since the last fruitless spin
    std::int32_t found_per_poll_ = 0;   // a moving average, in units of 1/one
    bool woken_by_timer_ = false;       // the timers have not fired yet
    std::int32_t fired_last_ = 0;       // at the last wake-up by a timer
    std::int32_t fired_before_ = 0;     // at the one before
    std::int64_t slack_ns_;
    std::int64_t last_timer_ns_ = -most_slack_ns; // the last wake-up by a timer
};

} // namespace coil::detail
