// The decisions of idle_experiment, without a loop: the test supplies the measurements.

#include <coil/context/detail/idle_experiment.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace {

using coil::detail::idle_experiment;
using coil::detail::idle_way;

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
    way batching = {0, 0};
};

enum class kernel { without_batches, with_batches };

/// A loop that does nothing but handle a load, and follows the experiments.
class loop {
public:
    explicit loop(std::uint32_t seed = 1, kernel k = kernel::without_batches)
        : experiment(seed, k == kernel::with_batches) {}

    void idle(const way& spinning, const way& sleeping, const way& batching = {0, 0}) {
        if (experiment.count_idle() && experiment.is_sample_due(now_ns)) {
            experiment.add({now_ns, cpu_ns_, events_, bytes_});
        }
        const bool spins = experiment.way() == idle_way::spin;
        const way& w = spins ? spinning : experiment.batches() ? batching : sleeping;
        (spins ? spun_ns : slept_ns) += w.wall_ns;
        if (!spins) {
            experiment.on_sleep(now_ns, now_ns + w.wall_ns);
        }
        now_ns += w.wall_ns;
        cpu_ns_ += w.cpu_ns;
        events_ += w.events;
        bytes_ += w.bytes;
    }
    void run(const load& what, std::int64_t duration_ns) {
        const std::int64_t end = now_ns + duration_ns;
        while (now_ns < end) {
            idle(what.spinning, what.sleeping, what.batching);
        }
    }
    void sleep(std::int64_t duration_ns) {
        experiment.on_sleep(now_ns, now_ns + duration_ns);
        now_ns += duration_ns;
    }
    [[nodiscard]] bool usually_spins() const { return experiment.usual() == idle_way::spin; }
    [[nodiscard]] double spun_share() const {
        return static_cast<double>(spun_ns) / static_cast<double>(spun_ns + slept_ns);
    }

    idle_experiment experiment;
    std::int64_t now_ns = 0;
    std::int64_t spun_ns = 0;
    std::int64_t slept_ns = 0;

private:
    std::int64_t cpu_ns_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t bytes_ = 0;
};

/// A client that sends its next request when it has the reply: each sleep delays it by 24 µs.
constexpr load lone_client{
    {28 * us, 26 * us, 2, 40}, {52 * us, 20 * us, 2, 40}, {54 * us, 28 * us, 2, 40}};
/// Clients that keep another processor busy: the rate does not depend on this thread.
constexpr load limited_elsewhere{
    {10 * us, 10 * us, 2, 40}, {10 * us, 7 * us, 2, 40}, {10 * us, 8 * us, 2, 40}};
/// Many clients of one thread, which waits for none of them. To wake this thread takes its time.
constexpr load many_clients{
    {100 * us, 93 * us, 20, 400}, {110 * us, 63 * us, 20, 400}, {97 * us, 64 * us, 20, 400}};
/// So few clients that all of them wait while a batch accumulates.
constexpr load few_clients{
    {103 * us, 96 * us, 20, 400}, {114 * us, 62 * us, 20, 400}, {143 * us, 86 * us, 20, 400}};

TEST(IdleExperiment, SpinsAtFirst) {
    const idle_experiment experiment(1, true);
    EXPECT_EQ(experiment.way(), idle_way::spin);
    EXPECT_EQ(experiment.usual(), idle_way::spin);
    EXPECT_EQ(experiment.results(), 0U);
}

TEST(IdleExperiment, SpinsForALoneClient) {
    loop l;
    l.run(lone_client, 10'000 * ms);
    EXPECT_TRUE(l.usually_spins());
    EXPECT_GE(l.experiment.results(), 5U);
    EXPECT_LE(l.experiment.results(), 20U); // they become rare
    EXPECT_LE(l.slept_ns, 20 * 3 * ms);     // each takes a window of 2 ms
}

TEST(IdleExperiment, SleepsAtOnceIfSpinningOnlyWaits) {
    loop l;
    l.run(limited_elsewhere, 100 * ms);
    EXPECT_FALSE(l.usually_spins());
    const std::int64_t spun = l.spun_ns;
    EXPECT_LE(spun, 60 * ms);
    l.run(limited_elsewhere, 10'000 * ms);
    EXPECT_FALSE(l.usually_spins());
    EXPECT_LE(l.spun_ns - spun, 20 * 3 * ms);
}

TEST(IdleExperiment, SpinsIfThatTakesLessCpuTimeThanSleeping) {
    loop l;
    l.run({{3 * us, 3 * us}, {3 * us, 4 * us}}, 1'000 * ms); // wakes up before it has fallen asleep
    EXPECT_TRUE(l.usually_spins());
    EXPECT_GE(l.experiment.results(), 2U);
}

TEST(IdleExperiment, LessLatencyThanItCostsCpuTimeDoesNotPay) {
    loop l;
    l.run(many_clients, 1'000 * ms); // 10 % faster, 48 % more CPU time
    EXPECT_EQ(l.experiment.usual(), idle_way::park);
}

TEST(IdleExperiment, SavingAsMuchLatencyAsItCostsCpuTimeDoesNotPay) {
    loop l;
    l.run({{50 * us, 33 * us}, {59 * us, 24 * us}}, 1'000 * ms); // reads of a disk, one at a time
    EXPECT_EQ(l.experiment.usual(), idle_way::park);
}

TEST(IdleExperiment, BatchesIfWakeUpsTakeTheClientsTime) {
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
        loop l(seed, kernel::with_batches);
        l.run(many_clients, 1'000 * ms);
        EXPECT_EQ(l.experiment.usual(), idle_way::batch);
        EXPECT_TRUE(l.experiment.batches());
    }
}

TEST(IdleExperiment, DoesNotBatchIfFewClientsWait) {
    loop l(1, kernel::with_batches);
    l.run(few_clients, 1'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::park);
}

TEST(IdleExperiment, DoesNotBatchALoneClient) {
    loop l(1, kernel::with_batches);
    l.run(lone_client, 10'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::spin);
    EXPECT_LE(l.experiment.results(), 40U);
    EXPECT_LE(l.slept_ns, 40 * 3 * ms);
}

TEST(IdleExperiment, FollowsALoadThatChangesAmongThreeWays) {
    loop l(1, kernel::with_batches);
    l.run(many_clients, 10'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::batch);
    l.run(few_clients, 6'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::park);
    l.run(lone_client, 6'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::spin);
    l.run(many_clients, 6'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::batch);
}

TEST(IdleExperiment, NoBatchAfterALongSleep) {
    loop l(1, kernel::with_batches);
    l.run(many_clients, 1'000 * ms);
    ASSERT_TRUE(l.experiment.batches());
    l.sleep(1 * ms);
    EXPECT_FALSE(l.experiment.batches());
    EXPECT_EQ(l.experiment.usual(), idle_way::batch);
    l.sleep(1 * ms - 1);
    EXPECT_TRUE(l.experiment.batches());
}

/// Nothing happens in the window of the first challenger, so its experiments are abandoned.
TEST(IdleExperiment, AChallengerWithoutAResultDoesNotDelayTheOtherOne) {
    loop l(1, kernel::with_batches);
    l.run({many_clients.spinning, {100 * us, 50 * us, 0}, many_clients.batching}, 1'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::batch);
}

TEST(IdleExperiment, ADifferenceWithinNoiseChangesNothing) {
    loop l(1, kernel::with_batches);
    l.run({{100 * us, 100 * us, 20}, {100 * us, 98 * us, 20}, {99 * us, 99 * us, 20}}, 10'000 * ms);
    EXPECT_EQ(l.experiment.usual(), idle_way::spin);
    EXPECT_GE(l.experiment.results(), 10U);
}

TEST(IdleExperiment, MoreCompletionsWithTheSameBytesAreNoGain) {
    loop l;
    // A stream: after a sleep there are more bytes to receive.
    l.run({{10 * us, 10 * us, 2, 10'000}, {20 * us, 12 * us, 1, 20'000}}, 1'000 * ms);
    EXPECT_FALSE(l.usually_spins());
}

TEST(IdleExperiment, MessagesHaveNoBytes) {
    loop l;
    // Two contexts that exchange messages. The read that ends a sleep transfers 8 bytes.
    l.run({{1 * us, 1 * us, 1, 0}, {20 * us, 10 * us, 1, 8}}, 1'000 * ms);
    EXPECT_TRUE(l.usually_spins());
}

TEST(IdleExperiment, OneContraryResultChangesNothing) {
    loop l;
    l.run(lone_client, 100 * ms);
    const std::uint64_t before = l.experiment.results();
    ASSERT_GE(before, 1U);
    while (l.experiment.results() == before) {
        l.run(limited_elsewhere, 100 * us);
    }
    EXPECT_TRUE(l.usually_spins());
    while (l.experiment.results() == before + 1) { // repeated at once
        l.run(lone_client, 100 * us);
    }
    EXPECT_TRUE(l.usually_spins());
    const std::uint64_t then = l.experiment.results();
    while (l.experiment.results() == then) {
        l.run(limited_elsewhere, 100 * us);
    }
    EXPECT_TRUE(l.usually_spins()); // the two were not in a row
}

TEST(IdleExperiment, FollowsALoadThatChanges) {
    loop l;
    l.run(lone_client, 10'000 * ms);
    l.run(limited_elsewhere, 5'000 * ms);
    EXPECT_FALSE(l.usually_spins());
    l.run(limited_elsewhere, 10'000 * ms);
    l.run(lone_client, 5'000 * ms);
    EXPECT_TRUE(l.usually_spins());
}

TEST(IdleExperiment, AWindowInWhichLittleHappensHasNoResult) {
    loop l;
    l.run({{40 * us, 40 * us, 0}, {40 * us, 20 * us, 0}}, 10'000 * ms); // only timers
    EXPECT_EQ(l.experiment.results(), 0U);
    EXPECT_TRUE(l.usually_spins());
}

TEST(IdleExperiment, ASleepOfAnIdleLoopEndsTheExperiment) {
    loop l;
    while (l.experiment.way() == idle_way::spin) { // into the window in which it sleeps
        l.run(lone_client, 20 * us);
    }
    EXPECT_TRUE(l.experiment.is_measuring());
    EXPECT_TRUE(l.usually_spins());
    l.sleep(1 * ms);
    EXPECT_FALSE(l.experiment.is_measuring());
    EXPECT_EQ(l.experiment.way(), idle_way::spin);
    EXPECT_EQ(l.experiment.results(), 0U);
}

TEST(IdleExperiment, ABusyLoopEndsTheExperiment) {
    loop l;
    while (l.experiment.way() == idle_way::spin) {
        l.run(lone_client, 20 * us);
    }
    l.experiment.on_busy(l.now_ns + 1 * ms);
    EXPECT_TRUE(l.experiment.is_measuring());
    l.experiment.on_busy(l.now_ns + 20 * ms);
    EXPECT_FALSE(l.experiment.is_measuring());
    EXPECT_EQ(l.experiment.way(), idle_way::spin);
}

TEST(IdleExperiment, ShortBurstsOfALoadThatChangedAreNoticed) {
    loop l;
    l.run(limited_elsewhere, 20'000 * ms);
    ASSERT_FALSE(l.usually_spins());
    int bursts = 0;
    for (; bursts < 100 && !l.usually_spins(); ++bursts) {
        l.sleep(10'000 * ms);
        l.run(lone_client, 100 * ms);
    }
    EXPECT_LE(bursts, 4);
}

TEST(IdleExperiment, ALoneClientWithRandomRepliesIsSpunFor) {
    loop l;
    std::minstd_rand random(7);
    std::exponential_distribution<double> reply(1 / 20.0);
    while (l.now_ns < 20'000 * ms) {
        const auto wait = static_cast<std::int64_t>(reply(random) * 1000) + 100;
        l.idle({wait + 2 * us, wait + 2 * us, 2, 40}, {wait + 26 * us, 20 * us, 2, 40});
    }
    EXPECT_GE(l.spun_share(), 0.9);
}

/// The share of the time spun if one of 100 replies of a load is far larger than the others.
double spun_share_with_unequal_replies(load what) {
    loop l;
    std::minstd_rand random(7);
    while (l.now_ns < 20'000 * ms) {
        what.spinning.bytes = what.sleeping.bytes = random() % 100 == 0 ? 1'000'000 : 40;
        l.idle(what.spinning, what.sleeping);
    }
    return l.spun_share();
}

TEST(IdleExperiment, RepliesOfVeryDifferentSizesDoNotHideTheGain) {
    EXPECT_GE(spun_share_with_unequal_replies(lone_client), 0.8);
}

TEST(IdleExperiment, RepliesOfVeryDifferentSizesAreNoGain) {
    EXPECT_LE(spun_share_with_unequal_replies(limited_elsewhere), 0.1);
}

TEST(IdleExperiment, ALoadWithAPeriodDoesNotKeepInStep) {
    for (const std::int64_t period : {4 * ms, 6 * ms, 8 * ms, 10 * ms}) {
        loop l;
        while (l.now_ns < 20'000 * ms) { // its rate changes, but not with the way of waiting
            const std::int64_t slow = l.now_ns % period < period / 2 ? 1 : 2;
            l.run({{slow * 10 * us, slow * 10 * us}, {slow * 10 * us, slow * 7 * us}}, 10 * us);
        }
        EXPECT_LE(l.spun_share(), 0.25) << period;
    }
}

/// A proxy and its backend on two threads: only the spins of the backend matter.
TEST(IdleExperiment, TwoLoopsThatBeginTogetherDoNotTakeTheOtherOnesGain) {
    loop proxy(11);
    loop backend(12);
    while (proxy.now_ns < 20'000 * ms) {
        const std::int64_t wall = backend.experiment.way() == idle_way::spin ? 28 * us : 52 * us;
        const way all{wall, wall, 2, 40};
        const way little{wall, wall / 2, 2, 40};
        proxy.idle(all, little);
        backend.idle(all, little);
    }
    EXPECT_LE(proxy.spun_share(), 0.2);
    EXPECT_GE(backend.spun_share(), 0.8);
}

} // namespace
