// The decisions of an idle loop, without a loop: the test supplies the measurements.

#include <coil/context/detail/idle_history.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace {

using coil::idle_policy;
using coil::detail::idle_history;
using coil::detail::timer_wheel;
using namespace std::chrono_literals;

constexpr std::int64_t us = 1'000;

idle_history spinning() { return idle_history(idle_policy::spin(50us)); }

TEST(IdleHistory, OnlySpinPoliciesSpin) {
    EXPECT_TRUE(spinning().should_spin(true));
    EXPECT_FALSE(idle_history(idle_policy::park()).should_spin(true));
    EXPECT_FALSE(idle_history(idle_policy::batch(4, 100us)).should_spin(true));
}

TEST(IdleHistory, SpinsWithNothingInFlightOnlyAfterAPost) {
    idle_history history = spinning();
    EXPECT_FALSE(history.should_spin(false));
    history.on_inbox_delivered();
    EXPECT_TRUE(history.should_spin(false));
}

TEST(IdleHistory, G8_ParksAfterAFruitlessSpinUntilASleepWasShort) {
    idle_history history = spinning();
    history.on_inbox_delivered();
    history.on_fruitless_spin();
    EXPECT_FALSE(history.should_spin(true));
    history.on_slept(0, 50 * us, timer_wheel::never);
    EXPECT_FALSE(history.should_spin(true)); // longer than a spin lasts
    history.on_slept(0, 50 * us - 1, timer_wheel::never);
    EXPECT_TRUE(history.should_spin(true));
    EXPECT_FALSE(history.should_spin(false)); // no post has arrived since the fruitless spin
}

TEST(IdleHistory, ShortSleepsOfOtherPoliciesHaveNoEffect) {
    idle_history history(idle_policy::park());
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
    EXPECT_EQ(history.coalesce_ns(), 50 * us / 8);
}

TEST(IdleHistory, DenseTimersShareAWakeUp) {
    idle_history history = spinning();
    EXPECT_EQ(history.wake_up_for(70 * us), 70 * us);
    history.on_slept(0, 60 * us, 70 * us);
    EXPECT_EQ(history.wake_up_for(71 * us), 71 * us); // the sleep ended before its deadline
    history.on_slept(0, 70 * us, 70 * us);
    EXPECT_EQ(history.wake_up_for(71 * us), 170 * us);
    EXPECT_EQ(history.wake_up_for(200 * us), 200 * us);
    EXPECT_EQ(history.wake_up_for(timer_wheel::never), timer_wheel::never);
    history.on_slept(70 * us, 300 * us, timer_wheel::never);
    EXPECT_EQ(history.wake_up_for(171 * us), 171 * us);
}

} // namespace
