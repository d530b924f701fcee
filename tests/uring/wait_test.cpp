#include "support.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include <sys/time.h>

// Waiting: wait(), and enter() with a timeout and with a minimum.

namespace uring_test {
namespace {

using namespace std::chrono_literals;
using WaitOnIoUring = with_io_uring;
using clock = std::chrono::steady_clock;

// ---- wait()

TEST_F(WaitOnIoUring, WaitEndsWithEtimeAndNotBefore) {
    ring r{8};
    const auto start = clock::now();
    EXPECT_EQ(r.wait(30ms), -ETIME);
    const auto took = clock::now() - start;
    EXPECT_GE(took, 30ms);
    EXPECT_LT(took, 5s);
}

TEST_F(WaitOnIoUring, WaitSubmitsAndReturnsWithTheFirstCompletion) {
    ring r{8};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    std::thread writer{[&] {
        std::this_thread::sleep_for(20ms);
        ASSERT_EQ(::write(p.out, "x", 1), 1);
    }};
    const auto start = clock::now();
    EXPECT_EQ(r.wait(10s), 0);
    EXPECT_LT(clock::now() - start, 5s);
    EXPECT_EQ(next(r).res, 1);
    EXPECT_EQ(byte, 'x');
    writer.join();
}

TEST_F(WaitOnIoUring, AWaitOfZeroPollsOnce) {
    ring r{8};
    const auto start = clock::now();
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(r.wait(0ns), -ETIME);
        EXPECT_EQ(r.wait(-5s), -ETIME);
    }
    EXPECT_LT(clock::now() - start, 2s);
    queue(r, prep::nop(), 1);
    EXPECT_EQ(r.wait(0ns), 0);
    EXPECT_EQ(r.wait(0ns), 0); // still there
    EXPECT_EQ(r.wait(1h), 0);
}

TEST_F(WaitOnIoUring, WaitAcceptsTheLongestDuration) {
    ring r{8};
    queue(r, prep::nop(), 1);
    EXPECT_EQ(r.wait(std::chrono::nanoseconds::max()), 0);
    next(r);
    timespec soon{0, 1'000'000};
    queue(r, prep::timeout(&soon), 2);
    EXPECT_EQ(r.wait(std::chrono::nanoseconds::max()), 0);
    EXPECT_EQ(next(r).res, -ETIME);
}

void on_alarm(int) {}

// SIGALRM every 20 ms while it lives, without SA_RESTART.
class alarm_clock {
public:
    alarm_clock() {
        struct sigaction action{};
        action.sa_handler = on_alarm;
        ::sigaction(SIGALRM, &action, &old_);
        const ::itimerval every{{0, 20000}, {0, 20000}};
        ::setitimer(ITIMER_REAL, &every, nullptr);
    }
    ~alarm_clock() {
        const ::itimerval never{};
        ::setitimer(ITIMER_REAL, &never, nullptr);
        ::sigaction(SIGALRM, &old_, nullptr);
    }

private:
    struct sigaction old_{};
};

TEST_F(WaitOnIoUring, ASignalEndsTheWaitAlsoWhenEntriesWereSubmittedByIt) {
    ring r{8};
    pipe_pair p;
    char byte = 0;
    const alarm_clock alarms;
    EXPECT_EQ(r.wait(10s), -EINTR);
    EXPECT_EQ(r.submit_and_wait(1), -EINTR);
    // Here the kernel returns "one entry consumed" and does not report the signal.
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    const auto start = clock::now();
    EXPECT_EQ(r.wait(10s), -EINTR);
    EXPECT_LT(clock::now() - start, 5s);
    EXPECT_EQ(r.sq_ready(), 0U);
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(next(r).res, 1);
}

TEST(Wait, WaitFollowsTheClockOfItsBackend) {
    auto k = std::make_unique<memory_backend>();
    memory_backend& memory = *k;
    ring r{ring_options{}, std::move(k)};
    const auto start = clock::now();
    const auto virtual_start = r.now();
    EXPECT_EQ(r.wait(1000h), -ETIME);
    EXPECT_LT(clock::now() - start, 5s);
    EXPECT_EQ(memory.elapsed, 1000h);
    EXPECT_EQ(r.now() - virtual_start, 1000h);
}

TEST(Wait, AWaitThatEndedEarlyWithoutAnErrorWasInterrupted) {
    auto k = std::make_unique<memory_backend>();
    memory_backend& memory = *k;
    ring r{ring_options{}, std::move(k)};
    memory.results_to_come = {0};
    EXPECT_EQ(r.wait(1h), -EINTR);
    EXPECT_EQ(memory.enters, 1U);
}

TEST(Wait, WaitContinuesWhenTheBackendTookOnlyAPart) {
    auto k = std::make_unique<memory_backend>();
    memory_backend& memory = *k;
    ring r{ring_options{}, std::move(k)};
    queue(r, prep::nop(), 1);
    memory.results_to_come = {0, 0}; // consumed nothing, without an error
    EXPECT_EQ(r.wait(1s), 0);
    EXPECT_EQ(memory.enters, 3U);
}

// ---- enter()'s timeout

TEST_F(WaitOnIoUring, EnterWaitsForAsManyAsAskedOrUntilTheTimeIsOver) {
    ring r{8};
    timespec ts{0, 30'000'000};
    auto start = clock::now();
    EXPECT_EQ(r.enter(1, 0, &ts), -ETIME);
    EXPECT_GE(clock::now() - start, 30ms);
    queue(r, prep::nop(), 1);
    start = clock::now();
    EXPECT_EQ(r.enter(2, 0, &ts), 1); // submitted one; the second never arrived
    EXPECT_GE(clock::now() - start, 30ms);
    start = clock::now();
    EXPECT_EQ(r.enter(2, 0, &ts), 0); // expiry is not an error if there is a completion
    EXPECT_GE(clock::now() - start, 30ms);
    EXPECT_EQ(r.enter(1, 0, &ts), 0);
    EXPECT_LT(clock::now() - start, 5s);
}

TEST_F(WaitOnIoUring, EnterTakesAnAbsoluteTime) {
    ring r{8};
    const auto at = clock::now() + 40ms;
    const auto since = at.time_since_epoch();
    timespec ts{std::chrono::duration_cast<std::chrono::seconds>(since).count(),
                (since % 1s).count()};
    const int got = r.enter(1, enter_flag::abs_timer, &ts);
    if (got == -EINVAL) {
        GTEST_SKIP() << "this kernel has no absolute wait";
    }
    EXPECT_EQ(got, -ETIME);
    EXPECT_GE(clock::now(), at);
    EXPECT_LT(clock::now(), at + 5s);
}

TEST_F(WaitOnIoUring, MinWaitCollectsForAWhileAndIsThenSatisfiedWithOne) {
    ring r{8};
    if ((r.features() & feature::min_timeout) == 0) {
        GTEST_SKIP() << "this kernel has no minimum wait";
    }
    pipe_pair p;
    char byte = 0;
    const auto write_after = [&](std::chrono::milliseconds delay) {
        return std::thread{[&p, delay] {
            std::this_thread::sleep_for(delay);
            ASSERT_EQ(::write(p.out, "x", 1), 1);
        }};
    };
    timespec limit{10, 0};
    for (const timespec* timeout :
         {static_cast<const timespec*>(&limit), static_cast<const timespec*>(nullptr)}) {
        // The first completion arrives within the minimum time and does not end the wait.
        queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
        auto start = clock::now();
        std::thread writer = write_after(5ms);
        EXPECT_EQ(r.enter(2, 0, timeout, 60'000), 1);
        auto took = clock::now() - start;
        EXPECT_GE(took, 60ms);
        EXPECT_LT(took, 5s);
        EXPECT_TRUE(r.has_completions());
        EXPECT_EQ(next(r).res, 1);
        writer.join();

        // No completion arrives within the minimum time: the first one afterwards ends the wait.
        queue(r, prep::read(p.in, &byte, 1, prep::current_position), 2);
        start = clock::now();
        writer = write_after(60ms);
        EXPECT_EQ(r.enter(2, 0, timeout, 5'000), 1);
        took = clock::now() - start;
        EXPECT_GE(took, 60ms);
        EXPECT_LT(took, 5s);
        EXPECT_TRUE(r.has_completions());
        EXPECT_EQ(next(r).res, 1);
        writer.join();
    }
}

TEST_F(WaitOnIoUring, MinWaitIsIgnoredIfTheBackendLacksIt) {
    auto k = std::make_unique<filter_backend>();
    k->after_setup = [](params& p) { p.features &= ~feature::min_timeout; };
    std::uint32_t seen = 0;
    k->refuse_enter = [&](unsigned flags, const void* arg, std::size_t) {
        if ((flags & enter_flag::ext_arg) != 0) {
            seen = std::max(seen, static_cast<const getevents_arg*>(arg)->min_wait_usec);
        }
        return 0;
    };
    ring r{ring_options{}, std::move(k)};
    queue(r, prep::nop(), 1);
    timespec limit{10, 0};
    EXPECT_EQ(r.enter(1, 0, &limit, 1000), 1);
    EXPECT_EQ(seen, 0U);
}

} // namespace
} // namespace uring_test
