// Tests the meter with a simulated clock.

#include <coil/context/detail/turn_meter.hpp>

#include <gtest/gtest.h>

#include <cstdint>

using coil::log2_histogram;
using coil::detail::turn_meter;

namespace {

/// A loop whose turns follow each other without a wait.
struct busy_loop {
    turn_meter meter;
    std::int64_t now = 1'000'000;
    int readings = 0;

    busy_loop() { meter.reset(now); }

    void turns(int n, std::int64_t each_ns) {
        for (int i = 0; i < n; ++i) {
            now += each_ns;
            meter.count();
            if (meter.due()) {
                read();
            }
        }
    }
    void read() {
        ++readings;
        meter.lap(now);
    }
};

TEST(TurnMeter, LongTurnsAreMeasuredOneByOne) {
    busy_loop loop;
    for (int i = 0; i < 10; ++i) {
        loop.turns(1, 200'000);
        loop.turns(1, 40'000);
    }
    EXPECT_EQ(loop.readings, 20);
    EXPECT_EQ(loop.meter.longest_ns(), 200'000U);
    const log2_histogram lengths = loop.meter.length();
    EXPECT_EQ(lengths.count(), 20U);
    EXPECT_EQ(lengths.sum(), 2'400'000U);
    EXPECT_EQ(lengths.bucket(log2_histogram::bucket_of(200'000)), 10U);
    EXPECT_EQ(lengths.bucket(log2_histogram::bucket_of(40'000)), 10U);
}

TEST(TurnMeter, ShortTurnsShareReadingsAndNoneIsLost) {
    busy_loop loop;
    loop.turns(10'000, 300);
    loop.read();
    EXPECT_LE(loop.readings, 10'000 / 16 + 6);
    EXPECT_EQ(loop.meter.longest_ns(), 300U);
    EXPECT_EQ(loop.meter.length().count(), 10'000U);
    EXPECT_EQ(loop.meter.length().sum(), 3'000'000U);
    EXPECT_EQ(loop.meter.length().bucket(log2_histogram::bucket_of(300)), 10'000U);
}

TEST(TurnMeter, ALongTurnAmongShortOnesIsNotMissed) {
    for (int before = 1000; before < 1040; ++before) { // at every position in its group
        busy_loop loop;
        loop.turns(before, 300);
        loop.turns(1, 2'000'000);
        loop.turns(100, 300);
        loop.read();
        EXPECT_GE(loop.meter.longest_ns(), 2'000'000U - 32'000U);
        EXPECT_LE(loop.meter.longest_ns(), 2'000'000U + 32'000U);
        const log2_histogram lengths = loop.meter.length();
        EXPECT_EQ(lengths.bucket(log2_histogram::bucket_of(2'000'000)), 1U);
        EXPECT_EQ(lengths.count(), static_cast<std::uint64_t>(before + 101));
        EXPECT_EQ(lengths.sum(), static_cast<std::uint64_t>((before + 100) * 300 + 2'000'000));
    }
}

TEST(TurnMeter, WhenAllBecomeLongAtOnceOneGroupIsOverstated) {
    busy_loop loop;
    loop.turns(1600, 300);
    loop.turns(160, 100'000);
    loop.read();
    EXPECT_LE(loop.meter.longest_ns(), 1'600'000U);
    EXPECT_GE(loop.meter.length().bucket(log2_histogram::bucket_of(100'000)), 160U - 16U);
    EXPECT_EQ(loop.meter.length().sum(), 1600U * 300U + 160U * 100'000U);
}

TEST(TurnMeter, TurnsOfMediumLengthAreMeasuredMoreOften) {
    busy_loop loop;
    loop.turns(1000, 300);
    // 48 µs for sixteen turns: not an outlier, but long enough to be measured more often
    loop.turns(1000, 3'000);
    const int before = loop.readings;
    loop.turns(1000, 3'000);
    EXPECT_GE(loop.readings - before, 100);
    EXPECT_EQ(loop.meter.longest_ns(), 3'000U);
}

TEST(TurnMeter, WaitingIsPartOfNoTurn) {
    busy_loop loop;
    for (int i = 0; i < 10; ++i) {
        loop.turns(1, 1'000);
        loop.read(); // before it sleeps
        loop.now += 1'000'000'000;
        loop.meter.resume(loop.now);
    }
    EXPECT_EQ(loop.meter.length().count(), 10U);
    EXPECT_EQ(loop.meter.length().sum(), 10'000U);
    EXPECT_EQ(loop.meter.longest_ns(), 1'000U);
}

TEST(TurnMeter, TimeBetweenTurnsBelongsToTheNext) {
    busy_loop loop;
    loop.now += 70'000; // time spent on submission between two waits
    loop.read();
    EXPECT_EQ(loop.meter.length().count(), 0U);
    loop.now += 5'000'000;
    loop.meter.resume(loop.now);
    loop.turns(1, 30'000);
    EXPECT_EQ(loop.meter.length().count(), 1U);
    EXPECT_EQ(loop.meter.longest_ns(), 100'000U);
}

TEST(TurnMeter, AClockThatGoesBackIsHarmless) {
    busy_loop loop;
    loop.now -= 500;
    loop.turns(1, 0);
    EXPECT_EQ(loop.meter.length().sum(), 0U);
    EXPECT_EQ(loop.meter.longest_ns(), 0U);
}

} // namespace
