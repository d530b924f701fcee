// The decisions of an idle loop, without a loop: the test supplies the measurements.

#include <coil/context/detail/idle_history.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace {

using coil::idle_policy;
using coil::detail::idle_history;
using coil::detail::timer_wheel;
using namespace std::chrono_literals;

constexpr std::int64_t usec = 1'000;

idle_history history_of(idle_policy policy, std::chrono::nanoseconds timer_slack = 500us) {
    return {policy, timer_slack};
}
idle_history spinning() { return history_of(idle_policy::spin(50us)); }

TEST(IdleHistory, OnlySpinPoliciesSpin) {
    EXPECT_TRUE(spinning().should_spin(true));
    EXPECT_FALSE(history_of(idle_policy::park()).should_spin(true));
    EXPECT_FALSE(history_of(idle_policy::batch(4, 100us)).should_spin(true));
}

TEST(IdleHistory, SpinsWithNothingInFlightOnlyAfterAPost) {
    idle_history history = spinning();
    EXPECT_FALSE(history.should_spin(false));
    history.on_inbox_delivered();
    EXPECT_TRUE(history.should_spin(false));
}

void sleep(idle_history& history, std::int64_t length) {
    history.on_slept(0, length, timer_wheel::never);
}

TEST(IdleHistory, G8_ParksAfterAFruitlessSpinUntilSleepsWereShort) {
    idle_history history = spinning();
    history.on_inbox_delivered();
    history.on_fruitless_spin();
    EXPECT_FALSE(history.should_spin(true));
    sleep(history, 1);
    EXPECT_FALSE(history.should_spin(true)); // its idle period began with the spin
    sleep(history, 50 * usec - 1);
    EXPECT_FALSE(history.should_spin(true)); // one may be an accident
    sleep(history, 50 * usec);
    sleep(history, 50 * usec - 1);
    EXPECT_FALSE(history.should_spin(true)); // not two in a row
    sleep(history, 50 * usec - 1);
    EXPECT_TRUE(history.should_spin(true));
    EXPECT_FALSE(history.should_spin(false)); // no post has arrived since the fruitless spin
}

TEST(IdleHistory, OnlyTheFirstSleepAfterASpinBelongsToItsIdlePeriod) {
    idle_history history = spinning();
    history.on_fruitless_spin();
    sleep(history, 50 * usec);
    sleep(history, 1);
    EXPECT_FALSE(history.should_spin(true));
    sleep(history, 1);
    EXPECT_TRUE(history.should_spin(true));
}

/// The number of spins in `periods` idle periods of these lengths, in turn.
int spins_in(int periods, std::initializer_list<std::int64_t> lengths) {
    idle_history history = spinning();
    const std::int64_t limit = history.policy().limit().count();
    int spins = 0;
    for (int i = 0; i < periods; ++i) {
        std::int64_t length = lengths.begin()[static_cast<std::size_t>(i) % lengths.size()];
        if (history.should_spin(true)) {
            ++spins;
            if (length < limit) {
                history.on_fruitful_spin();
                continue;
            }
            history.on_fruitless_spin();
            length -= limit;
        }
        sleep(history, length);
    }
    return spins;
}

TEST(IdleHistory, SpinsWhileIdlePeriodsAreShort) { EXPECT_EQ(spins_in(1000, {20 * usec}), 1000); }

TEST(IdleHistory, ARareLongPeriodCostsTwoSleeps) {
    const std::int64_t often = 20 * usec;
    EXPECT_GE(spins_in(1000, {often, often, often, often, often, often, often, often, 1'000 * usec,
                              often}),
              700);
}

TEST(IdleHistory, ParksIfShortAndLongPeriodsAlternate) {
    EXPECT_LE(spins_in(1000, {20 * usec, 300 * usec}), 2);
    EXPECT_LE(spins_in(1000, {20 * usec, 20 * usec, 300 * usec}), 12);
}

TEST(IdleHistory, ParksIfAllPeriodsAreLongerThanASpin) {
    // The sleep after the first spin is shorter than a spin.
    EXPECT_EQ(spins_in(1000, {80 * usec}), 1);
}

TEST(IdleHistory, ShortSleepsOfOtherPoliciesHaveNoEffect) {
    idle_history history = history_of(idle_policy::park());
    history.on_slept(0, 1, timer_wheel::never);
    EXPECT_FALSE(history.should_spin(true));
}

TEST(IdleHistory, CoalescesIfPollsFindSeveralCompletionsButNotMany) {
    idle_history history = spinning();
    EXPECT_FALSE(history.should_coalesce());
    const auto polls = [&history](int n, int completions) {
        for (int i = 0; i < n; ++i) {
            history.on_polled(completions);
        }
    };
    polls(200, 1);
    EXPECT_FALSE(history.should_coalesce()); // one completion per poll: nothing to coalesce
    polls(200, 4);
    EXPECT_TRUE(history.should_coalesce());
    polls(200, 40);
    EXPECT_FALSE(history.should_coalesce()); // enough of them share a system call without waiting
    polls(200, 2);
    EXPECT_TRUE(history.should_coalesce());
    EXPECT_EQ(history.coalesce_ns(), 50 * usec / 8);
}

TEST(IdleHistory, BatchesOfASpinPolicyAreShort) {
    EXPECT_EQ(spinning().batch_events(false), 1U);
    EXPECT_EQ(spinning().batch_events(true), 16U);
    EXPECT_EQ(spinning().batch_ns(), 20 * usec);
    EXPECT_EQ(history_of(idle_policy::spin(5us)).batch_ns(), 5 * usec); // not longer than a spin
    const idle_history batches = history_of(idle_policy::batch(4, 100us));
    EXPECT_EQ(batches.batch_events(false), 4U);
    EXPECT_EQ(batches.batch_ns(), 100 * usec);
    EXPECT_EQ(history_of(idle_policy::park()).batch_events(false), 1U);
}

TEST(IdleHistory, DenseTimersShareAWakeUp) {
    idle_history history = spinning();
    EXPECT_EQ(history.wake_up_for(70 * usec), 70 * usec);
    history.on_slept(0, 60 * usec, 70 * usec);
    EXPECT_EQ(history.wake_up_for(71 * usec), 71 * usec); // the sleep ended before its deadline
    history.on_slept(0, 70 * usec, 70 * usec);
    EXPECT_EQ(history.wake_up_for(71 * usec), timer_wheel::start_of_tick(170 * usec));
    EXPECT_EQ(history.wake_up_for(200 * usec), 200 * usec);
    EXPECT_EQ(history.wake_up_for(timer_wheel::never), timer_wheel::never);
    history.on_slept(70 * usec, 300 * usec, timer_wheel::never);
    EXPECT_EQ(history.wake_up_for(171 * usec), 171 * usec);
}

constexpr std::int64_t tick = 1 << timer_wheel::tick_shift;

// Every tick has a timer. Sleeps until `wake_ups` of them have fired, each together with `timers`
// others. Returns the number of ticks after which the next one is fired.
std::int64_t ticks_between(idle_history& history, std::int64_t& now, int wake_ups, int timers) {
    for (int i = 0; i < wake_ups; ++i) {
        const std::int64_t due = history.wake_up_for(now + tick);
        history.on_slept(now, due, due);
        history.on_timers_fired(timers);
        now = due;
    }
    const std::int64_t delay = history.wake_up_for(now + tick) - now;
    EXPECT_EQ(delay % tick, 0);
    return delay / tick;
}

TEST(IdleHistory, TheWholeTimerSlackIsUsedWhileSeveralTimersShareAWakeUp) {
    idle_history history = spinning();
    std::int64_t now = 0;
    EXPECT_EQ(ticks_between(history, now, 50, 1), 3);   // 98 µs
    EXPECT_EQ(ticks_between(history, now, 50, 20), 15); // 492 µs
    EXPECT_EQ(ticks_between(history, now, 50, 2), 3);
}

TEST(IdleHistory, TimersThatFireAfterAnotherWakeUpAreNotCounted) {
    idle_history history = spinning();
    std::int64_t now = 0;
    EXPECT_EQ(ticks_between(history, now, 50, 1), 3);
    for (int i = 0; i < 50; ++i) {
        history.on_slept(now, now + 1, timer_wheel::never);
        history.on_timers_fired(20);
    }
    EXPECT_EQ(ticks_between(history, now, 1, 1), 3);
}

TEST(IdleHistory, ASingleTimerIsNotDelayedByABurstBeforeIt) {
    idle_history history = spinning();
    std::int64_t now = 0;
    EXPECT_EQ(ticks_between(history, now, 10, 1), 3);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(ticks_between(history, now, 1, 1000), 3);
        EXPECT_EQ(ticks_between(history, now, 3, 1), 3);
    }
}

TEST(IdleHistory, AShorterTimerSlackIsKept) {
    std::int64_t now = 0;
    idle_history precise = history_of(idle_policy::park(), 0ns);
    EXPECT_EQ(ticks_between(precise, now, 50, 20), 1);
    idle_history shorter = history_of(idle_policy::park(), 66us);
    EXPECT_EQ(ticks_between(shorter, now, 50, 1), 2);
    EXPECT_EQ(ticks_between(shorter, now, 50, 20), 2);
    idle_history negative = history_of(idle_policy::park(), -1s);
    EXPECT_EQ(ticks_between(negative, now, 50, 20), 1);
    idle_history longest = history_of(idle_policy::park(), std::chrono::nanoseconds::max());
    EXPECT_GT(ticks_between(longest, now, 50, 20), 0); // no overflow
}

} // namespace
