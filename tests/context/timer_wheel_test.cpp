// The timer wheel alone, with a clock set by the test.

#include "support/run.hpp"

#include <coil/context/detail/timer_wheel.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <random>
#include <vector>

using coil::detail::timer_call;
using coil::detail::timer_node;
using coil::detail::timer_wheel;

namespace {

constexpr std::int64_t tick = std::int64_t{1} << timer_wheel::tick_shift;
constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t s = 1000 * ms;
constexpr std::int64_t hour = 3600 * s;
constexpr std::int64_t day = 24 * hour;

std::vector<struct probe*> fired;

struct probe : timer_call {
    explicit probe(std::int64_t when = 0)
        : timer_call([](timer_node& n) noexcept { fired.push_back(static_cast<probe*>(&n)); }),
          deadline(when) {}
    std::int64_t deadline;
};

/// A wheel and its clock, which jumps between events as the event loop does by sleeping.
class scheduler {
public:
    explicit scheduler(std::int64_t start = 0) : now(start) { fired.clear(); }

    void arm(probe& p, std::int64_t deadline) {
        p.deadline = deadline;
        ASSERT_TRUE(wheel.arm(p, deadline, now));
    }

    /// Sleeps as long as the wheel says, repeatedly, until `end`.
    void run_until(std::int64_t end) {
        while (now < end) {
            const std::int64_t next = wheel.next_ns();
            now = std::min(std::max(next, now), end);
            wheel.expire(now);
            ASSERT_LT(++wakes, 10'000'000) << "the wheel wakes up forever";
            if (next > end) {
                break;
            }
        }
    }

    timer_wheel wheel;
    std::int64_t now;
    int wakes = 0;
};

TEST(TimerWheel, AnEmptyOneNeedsNoWakeUp) {
    scheduler c;
    EXPECT_EQ(c.wheel.next_ns(), timer_wheel::never);
    EXPECT_EQ(c.wheel.size(), 0U);
    c.wheel.expire(hour);
    EXPECT_EQ(c.wheel.next_ns(), timer_wheel::never);
}

TEST(TimerWheel, FiresAtItsTickAndNotBefore) {
    scheduler c;
    probe p;
    c.arm(p, 10 * tick);
    EXPECT_TRUE(p.armed());
    c.wheel.expire(10 * tick - 1);
    EXPECT_TRUE(fired.empty());
    c.wheel.expire(10 * tick);
    EXPECT_EQ(fired.size(), 1U);
    EXPECT_FALSE(p.armed());
    EXPECT_EQ(c.wheel.size(), 0U);
}

TEST(TimerWheel, ADeadlineBetweenTicksIsRoundedUp) {
    scheduler c;
    probe p;
    c.arm(p, 10 * tick + 1);
    c.wheel.expire(11 * tick - 1);
    EXPECT_TRUE(fired.empty());
    c.wheel.expire(11 * tick);
    EXPECT_EQ(fired.size(), 1U);
}

TEST(TimerWheel, ADeadlineInThePastFiresAtOnce) {
    scheduler c(day);
    probe p;
    c.arm(p, hour);
    EXPECT_LE(c.wheel.next_ns(), c.now);
    c.wheel.expire(c.now);
    EXPECT_EQ(fired.size(), 1U);
}

TEST(TimerWheel, DisarmedDoesNotFire) {
    scheduler c;
    probe a;
    probe b;
    c.arm(a, ms);
    c.arm(b, ms);
    c.wheel.disarm(a);
    c.wheel.disarm(a);
    EXPECT_FALSE(a.armed());
    EXPECT_EQ(c.wheel.size(), 1U);
    c.run_until(2 * ms);
    EXPECT_EQ(fired, std::vector<probe*>{&b});
}

TEST(TimerWheel, TheLastDisarmedNeedsNoWakeUp) {
    scheduler c;
    probe p;
    c.arm(p, ms);
    c.wheel.disarm(p);
    EXPECT_EQ(c.wheel.next_ns(), timer_wheel::never);
}

TEST(TimerWheel, TimersOfOneTickFireInArmingOrder) {
    scheduler c;
    std::list<probe> probes(100);
    std::vector<probe*> order;
    for (auto& p : probes) {
        c.arm(p, 5 * ms);
        order.push_back(&p);
    }
    c.run_until(6 * ms);
    EXPECT_EQ(fired, order);
}

TEST(TimerWheel, EachDistanceFiresWithinATickOfItsDeadline) {
    std::vector<std::int64_t> distances{0, 1, tick - 1, tick, tick + 1, ms, s, 60 * s, hour, day};
    for (int bits = 12; bits < 45; ++bits) { // around every boundary between levels
        for (const std::int64_t off : {-4097, -4096, -257, -2, -1, 0, 1, 2, 255, 256, 4095, 4096}) {
            distances.push_back(((std::int64_t{1} << bits) + off) * tick);
        }
    }
    for (const std::int64_t distance : distances) {
        if (distance < 0) {
            continue;
        }
        for (const std::int64_t start : {std::int64_t{0}, 7 * hour + 1, 4095 * tick, 300 * day}) {
            scheduler c(start);
            probe p;
            c.arm(p, start + distance);
            c.run_until(start + distance + tick);
            ASSERT_EQ(fired.size(), 1U) << "distance " << distance << " from " << start;
            ASSERT_GE(c.now, p.deadline) << "distance " << distance << " from " << start;
        }
    }
}

TEST(TimerWheel, YearsAheadWakeUpRarely) {
    scheduler c(day);
    probe p;
    const std::int64_t ten_years = 3650 * day;
    c.arm(p, day + ten_years);
    c.run_until(day + ten_years + tick);
    EXPECT_EQ(fired.size(), 1U);
    EXPECT_LT(c.wakes, 5000) << "wake-ups of an idle context in ten years";
}

TEST(TimerWheel, TheFarthestDeadlineDoesNotOverflow) {
    scheduler c(day);
    probe p;
    c.arm(p, std::numeric_limits<std::int64_t>::max() / 2);
    EXPECT_GT(c.wheel.next_ns(), day);
    c.run_until(400 * day);
    EXPECT_TRUE(fired.empty());
    c.wheel.disarm(p);
}

TEST(TimerWheel, AFarTimerLetsTheContextSleepLong) {
    scheduler c(hour);
    probe p;
    c.arm(p, 2 * hour);
    EXPECT_GT(c.wheel.next_ns() - c.now, 60 * s);
}

TEST(TimerWheel, ACallbackMayDisarmOtherTimers) {
    static timer_wheel* wheel;
    static probe* victim;
    struct killer : timer_call {
        killer() : timer_call([](timer_node&) noexcept { wheel->disarm(*victim); }) {}
    };
    scheduler c;
    wheel = &c.wheel;
    killer first;
    probe middle;
    probe last;
    victim = &middle;
    ASSERT_TRUE(c.wheel.arm(first, ms, 0));
    c.arm(middle, ms);
    c.arm(last, ms);
    c.run_until(2 * ms);
    EXPECT_EQ(fired, std::vector<probe*>{&last});
    EXPECT_EQ(c.wheel.size(), 0U);
}

TEST(TimerWheel, ACallbackMayArmItsTimerAgainForTheNextTick) {
    static timer_wheel* wheel;
    static int times;
    struct again : timer_call {
        again()
            : timer_call([](timer_node& n) noexcept {
                  ++times;
                  EXPECT_LT(times, 1000);
                  EXPECT_TRUE(times >= 1000 || wheel->arm(static_cast<again&>(n), 0, ms));
              }) {}
    };
    scheduler c;
    wheel = &c.wheel;
    times = 0;
    again node;
    ASSERT_TRUE(c.wheel.arm(node, 0, 0));
    c.wheel.expire(ms);
    EXPECT_LE(times, ms / tick + 2);
    c.wheel.disarm(node);
}

/// Compares random arming, disarming and waiting with a multimap.
void compare_with_model(unsigned seed, int steps) {
    std::mt19937_64 random(seed);
    scheduler c(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(1000 * day)));
    std::vector<probe> probes(200);
    std::multimap<std::int64_t, probe*> model;
    auto forget = [&](probe* p) {
        auto [at, end] = model.equal_range(p->deadline);
        at = std::find_if(at, end, [p](const auto& entry) { return entry.second == p; });
        ASSERT_NE(at, end) << "fired, but not armed";
        model.erase(at);
    };
    for (int i = 0; i < steps; ++i) {
        probe& p = probes[random() % probes.size()];
        switch (random() % 4) {
        case 0:
        case 1:
            if (!p.armed()) {
                const auto bits = random() % 50; // all orders of magnitude are equally likely
                c.arm(p, c.now + static_cast<std::int64_t>(random() & ((1ULL << bits) - 1)));
                model.emplace(p.deadline, &p);
            }
            break;
        case 2:
            if (p.armed()) {
                forget(&p);
                c.wheel.disarm(p);
            }
            break;
        default:
            fired.clear();
            const std::int64_t next = c.wheel.next_ns();
            if (!model.empty()) {
                ASSERT_LE(next, model.begin()->first + tick) << "seed " << seed << " step " << i;
            }
            c.now +=
                random() % 2 == 0
                    ? static_cast<std::int64_t>(random() & ((1ULL << random() % 46) - 1))
                    : (next == timer_wheel::never ? 0 : std::max<std::int64_t>(next - c.now, 0));
            c.wheel.expire(c.now);
            for (probe* f : fired) {
                ASSERT_LE(f->deadline, c.now) << "early; seed " << seed << " step " << i;
                forget(f);
            }
            if (!model.empty()) {
                ASSERT_GT(model.begin()->first + tick, c.now)
                    << "late; seed " << seed << " step " << i;
            }
        }
        ASSERT_EQ(c.wheel.size(), model.size());
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST(TimerWheel, AgreesWithAMultimapOnRandomWork) {
    for (unsigned seed = 0; seed < static_cast<unsigned>(coil_test::rounds(40, 2000)); ++seed) {
        compare_with_model(seed, 2000);
        if (HasFatalFailure()) {
            return;
        }
    }
}

} // namespace
