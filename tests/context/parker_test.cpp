// The parker without an event loop: only with the ring and the inbox that it connects.

#include "loop_parts.hpp"
#include "support/fault_environment.hpp"

#include <coil/context/detail/parker.hpp>

namespace {

using namespace loop_parts;

struct parked : ring_alone {
    explicit parked(idle_policy policy = idle_policy::park())
        : parking(*ring, box, meter, metrics, policy, std::chrono::microseconds(500)) {}
    ~parked() {
        while (parking.descriptor().is_watched()) {
            parking.descriptor().expect_signal();
            parking.descriptor().signal();
            reap(1);
        }
        parking.descriptor().await_signals();
    }

    void reap(unsigned at_least) {
        (*ring).enter(at_least, nullptr, 0);
        (*ring)->for_each_cqe([this](const uring::cqe& c) {
            if (c.user_data == static_cast<std::uint64_t>(completion_kind::wake)) {
                parking.descriptor().on_read(c.res);
                ++wakes;
            }
        });
    }
    std::int64_t now() {
        return std::chrono::nanoseconds((*ring)->now().time_since_epoch()).count();
    }
    /// Called by another thread.
    void post(queue_node& node) {
        if (box.push(node)) {
            parking.descriptor().signal();
        }
    }

    inbox box;
    turn_meter meter;
    parker parking;
    int wakes = 0;
};

TEST(Parker, DoesNotSleepWhenSomethingWasPosted) {
    parked p;
    queue_node node;
    p.post(node);
    EXPECT_FALSE(p.parking.announce());
    EXPECT_EQ(p.box.take_all(), &node);
    EXPECT_TRUE(p.parking.announce());
    p.parking.unpark();
    EXPECT_EQ(p.metrics.wake_ups_sent.get(), 0U);
}

TEST(Parker, MakesSpaceForTheReadThatEndsItsSleep) {
    COIL_SKIP_UNDER_FAULTS("the enter that makes space may be interrupted");
    parked p;
    fill(*p.ring);
    EXPECT_TRUE(p.parking.announce());
    EXPECT_TRUE(p.parking.descriptor().is_watched());
    p.parking.unpark();
}

TEST(Parker, APostBetweenAnnouncementAndSleepEndsTheSleep) {
    parked p;
    queue_node node;
    ASSERT_TRUE(p.parking.announce());
    p.post(node);
    p.parking.sleep(timer_wheel::never, 0); // returns, or the test hangs
    p.reap(0);
    EXPECT_EQ(p.wakes, 1);
    EXPECT_EQ(p.metrics.parks.get(), 1U);
    EXPECT_EQ(p.metrics.wake_ups_sent.get(), 1U);
    EXPECT_EQ(p.parking.take_woken_by_posts(), 1U);
    EXPECT_EQ(p.parking.take_woken_by_posts(), 0U);
    EXPECT_EQ(p.box.take_all(), &node);
}

TEST(Parker, ASignalWithoutAPostIsNotCountedAsAPost) {
    parked p;
    ASSERT_TRUE(p.parking.announce());
    ASSERT_TRUE(p.box.unpark_for_signal());
    p.parking.descriptor().signal();
    p.parking.sleep(timer_wheel::never, 0);
    p.reap(0);
    EXPECT_EQ(p.metrics.wake_ups_sent.get(), 1U);
    EXPECT_EQ(p.parking.take_woken_by_posts(), 0U);
}

TEST(Parker, ADeadlineEndsTheSleep) {
    COIL_SKIP_UNDER_FAULTS("a sleep may be interrupted");
    parked p;
    const std::int64_t until = p.now() + 2'000'000;
    ASSERT_TRUE(p.parking.announce());
    p.parking.sleep(until, 0);
    EXPECT_GE(p.now(), until);
    EXPECT_FALSE(p.box.is_parked());
}

TEST(Parker, APassedDeadlineEndsTheSleepAtOnce) {
    parked p;
    ASSERT_TRUE(p.parking.announce());
    p.parking.sleep(0, 0);
    EXPECT_FALSE(p.box.is_parked());
}

/// How long the parker sleeps with one nop submitted and `due` completions due.
std::chrono::steady_clock::duration time_in_a_batch(parked& p, std::uint32_t due) {
    uring::sqe* const entry = (*p.ring)->acquire();
    *entry = uring::prep::nop();
    entry->user_data = static_cast<std::uint64_t>(completion_kind::ignore);
    (*p.ring)->commit(entry);
    EXPECT_TRUE(p.parking.announce());
    const auto begin = std::chrono::steady_clock::now();
    p.parking.sleep(timer_wheel::never, due);
    return std::chrono::steady_clock::now() - begin;
}

TEST(Parker, ABatchWaitsForNoMoreCompletionsThanAreDue) {
    COIL_SKIP_UNDER_FAULTS("a sleep may be interrupted");
    parked p(idle_policy::batch(2, std::chrono::minutes(1)));
    EXPECT_LT(time_in_a_batch(p, 1), std::chrono::seconds(30));
    p.reap(0);
    EXPECT_LT(time_in_a_batch(p, 0), std::chrono::seconds(30)); // for one, at least
    p.reap(0);
    if (!p.ring->has_min_wait()) {
        GTEST_SKIP() << "the kernel does not support a minimum wait";
    }
    parked waits(idle_policy::batch(2, std::chrono::milliseconds(20)));
    EXPECT_GE(time_in_a_batch(waits, 2), std::chrono::milliseconds(20)); // the second may come
    waits.reap(0);
}

TEST(Parker, SpinsUntilSomethingIsPosted) {
    parked p(idle_policy::spin(std::chrono::hours(1)));
    queue_node node;
    std::thread other([&p, &node] { p.post(node); });
    EXPECT_TRUE(p.parking.spin(timer_wheel::never)); // returns, or the test hangs
    other.join();
    EXPECT_EQ(p.metrics.spins.get(), 1U);
    EXPECT_EQ(p.box.take_all(), &node);
}

TEST(Parker, G8_ASpinEndsAtItsLimitAndAtADeadline) {
    parked limited(idle_policy::spin(std::chrono::microseconds(20)));
    EXPECT_FALSE(limited.parking.spin(timer_wheel::never));
    parked deadline(idle_policy::spin(std::chrono::hours(1)));
    EXPECT_FALSE(deadline.parking.spin(deadline.now()));
}

TEST(Parker, CoalescingEndsWhenSomethingIsPosted) {
    parked p(idle_policy::spin(std::chrono::hours(8)));
    for (int i = 0; i < 100; ++i) {
        p.parking.history().on_polled(4);
    }
    ASSERT_TRUE(p.parking.history().should_coalesce());
    queue_node node;
    p.post(node);
    p.parking.coalesce(2); // does not wait for an hour
    EXPECT_EQ(p.box.take_all(), &node);
    p.parking.coalesce(1); // does not wait: no second completion can come
}

} // namespace
