// The decisions of spin_experiment, without a loop: the test supplies the measurements.

#include <coil/context/detail/spin_experiment.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using coil::detail::spin_experiment;

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;

/// A load as one way of waiting handles it: the time and CPU time per idle period, and what is done
/// in it.
struct way {
    std::int64_t wall_ns;
    std::int64_t cpu_ns;
    std::uint64_t events = 1;
    std::uint64_t bytes = 0;
};

struct load {
    way spinning;
    way sleeping;
};

/// A loop that does nothing but handle a load, and follows the experiments.
class loop {
public:
    void run(const load& what, std::int64_t duration_ns) {
        const std::int64_t end = now_ns + duration_ns;
        while (now_ns < end) {
            if (experiment.is_check_due() && experiment.is_sample_due(now_ns)) {
                experiment.add({now_ns, cpu_ns_, events_, bytes_});
            }
            const way& w = experiment.spins() ? what.spinning : what.sleeping;
            (experiment.spins() ? spun_ns : slept_ns) += w.wall_ns;
            now_ns += w.wall_ns;
            cpu_ns_ += w.cpu_ns;
            events_ += w.events;
            bytes_ += w.bytes;
        }
    }

    spin_experiment experiment;
    std::int64_t now_ns = 0;
    std::int64_t spun_ns = 0;
    std::int64_t slept_ns = 0;

private:
    std::int64_t cpu_ns_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t bytes_ = 0;
};

/// A client that sends its next request when it has the reply: each sleep delays it by 6 µs.
constexpr load lone_client{{20 * us, 20 * us, 2, 40}, {26 * us, 8 * us, 2, 40}};
/// Clients that keep another processor busy: the rate does not depend on this thread.
constexpr load limited_elsewhere{{10 * us, 10 * us, 2, 40}, {10 * us, 7 * us, 2, 40}};

TEST(SpinExperiment, SpinsAtFirst) {
    const spin_experiment experiment;
    EXPECT_TRUE(experiment.spins());
    EXPECT_TRUE(experiment.is_in_favour());
    EXPECT_EQ(experiment.results(), 0U);
}

TEST(SpinExperiment, SpinsForALoneClient) {
    loop l;
    l.run(lone_client, 10'000 * ms);
    EXPECT_TRUE(l.experiment.is_in_favour());
    EXPECT_GE(l.experiment.results(), 5U);
    EXPECT_LE(l.experiment.results(), 20U); // they become rare
    EXPECT_LE(l.slept_ns, 20 * 3 * ms);     // each takes a window of 2 ms
}

TEST(SpinExperiment, SleepsAtOnceIfSpinningOnlyWaits) {
    loop l;
    l.run(limited_elsewhere, 100 * ms);
    EXPECT_FALSE(l.experiment.is_in_favour());
    const std::int64_t spun = l.spun_ns;
    EXPECT_LE(spun, 60 * ms);
    l.run(limited_elsewhere, 10'000 * ms);
    EXPECT_FALSE(l.experiment.is_in_favour());
    EXPECT_LE(l.spun_ns - spun, 20 * 3 * ms);
}

TEST(SpinExperiment, SpinsIfThatTakesLessCpuTimeThanSleeping) {
    loop l;
    l.run({{3 * us, 3 * us}, {3 * us, 4 * us}}, 1'000 * ms); // wakes up before it has fallen asleep
    EXPECT_TRUE(l.experiment.is_in_favour());
    EXPECT_GE(l.experiment.results(), 2U);
}

TEST(SpinExperiment, MoreCompletionsWithTheSameBytesAreNoGain) {
    loop l;
    // A stream: after a sleep there are more bytes to receive.
    l.run({{10 * us, 10 * us, 2, 10'000}, {20 * us, 12 * us, 1, 20'000}}, 1'000 * ms);
    EXPECT_FALSE(l.experiment.is_in_favour());
}

TEST(SpinExperiment, MessagesHaveNoBytes) {
    loop l;
    // Two contexts that exchange messages. The read that ends a sleep transfers 8 bytes.
    l.run({{1 * us, 1 * us, 1, 0}, {20 * us, 10 * us, 1, 8}}, 1'000 * ms);
    EXPECT_TRUE(l.experiment.is_in_favour());
}

TEST(SpinExperiment, OneContraryResultChangesNothing) {
    loop l;
    l.run(lone_client, 100 * ms);
    const std::uint64_t before = l.experiment.results();
    ASSERT_GE(before, 1U);
    while (l.experiment.results() == before) {
        l.run(limited_elsewhere, 100 * us);
    }
    EXPECT_TRUE(l.experiment.is_in_favour());
    while (l.experiment.results() == before + 1) { // repeated at once
        l.run(lone_client, 100 * us);
    }
    EXPECT_TRUE(l.experiment.is_in_favour());
    const std::uint64_t then = l.experiment.results();
    while (l.experiment.results() == then) {
        l.run(limited_elsewhere, 100 * us);
    }
    EXPECT_TRUE(l.experiment.is_in_favour()); // the two were not in a row
}

TEST(SpinExperiment, FollowsALoadThatChanges) {
    loop l;
    l.run(lone_client, 10'000 * ms);
    l.run(limited_elsewhere, 1'500 * ms);
    EXPECT_FALSE(l.experiment.is_in_favour());
    l.run(limited_elsewhere, 10'000 * ms);
    l.run(lone_client, 1'500 * ms);
    EXPECT_TRUE(l.experiment.is_in_favour());
}

TEST(SpinExperiment, AWindowInWhichLittleHappensHasNoResult) {
    loop l;
    l.run({{40 * us, 40 * us, 0}, {40 * us, 20 * us, 0}}, 10'000 * ms); // only timers
    EXPECT_EQ(l.experiment.results(), 0U);
    EXPECT_TRUE(l.experiment.is_in_favour());
}

TEST(SpinExperiment, SleepsThatAreLongerThanASpinDoNotCount) {
    loop l;
    for (int i = 0; i < 10'000; ++i) { // short idle periods with long ones in between
        l.run(lone_client, 400 * us);
        l.now_ns += 600 * us;
        l.experiment.on_long_sleep(600 * us);
    }
    EXPECT_GE(l.experiment.results(), 5U);
    EXPECT_TRUE(l.experiment.is_in_favour());
}

TEST(SpinExperiment, AWindowThatTheLoopWasTooBusyToEndHasNoResult) {
    loop l;
    for (int i = 0; i < 1'000; ++i) {
        l.run(limited_elsewhere, 1 * ms);
        l.now_ns += 50 * ms; // saturated: no idle period
    }
    EXPECT_EQ(l.experiment.results(), 0U);
    EXPECT_TRUE(l.experiment.is_in_favour());
    EXPECT_TRUE(l.experiment.spins());
}

} // namespace
