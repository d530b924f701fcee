// poll_multishot and timeout_multishot.

#include "io/stream_support.hpp"
#include "support/fault_environment.hpp"

#include <algorithm>

#include <poll.h>
#include <sys/eventfd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::pipe_pair;
using coil_test::socket_pair;
using io_test::put;
using io_test::some_turns;

namespace {

class PollStream : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(PollStream);
class TimeoutStream : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(TimeoutStream);

TEST_P(PollStream, ReportsEventsEachTimeTheyOccur) {
    auto main = []() -> task<> {
        const socket_pair s;
        auto events = io::poll_multishot(s.a, POLLIN | POLLRDHUP);
        EXPECT_EQ(events.key(), 0U);
        EXPECT_EQ(co_await timeout(events.next(), 1ms), -ETIMEDOUT);
        EXPECT_NE(events.key(), 0U);
        char byte = 0;
        for (int i = 0; i < 10; ++i) {
            put(s.b, "x");
            auto what = co_await events.next();
            EXPECT_TRUE(what);
            EXPECT_NE(*what & POLLIN, 0);
            EXPECT_EQ(::recv(s.a, &byte, 1, 0), 1);
        }
        EXPECT_EQ(::shutdown(s.b, SHUT_WR), 0);
        int seen = 0;
        for (int i = 0; i < 10 && (seen & POLLRDHUP) == 0; ++i) {
            seen |= co_await events.next();
        }
        EXPECT_NE(seen & POLLRDHUP, 0);
    };
    run(main());
}

TEST_P(PollStream, G6_AFloodIsPausedAndLosesNoReadiness) {
    auto main = []() -> task<> {
        const descriptor counter{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
        auto events = io::poll_multishot(counter, POLLIN);
        EXPECT_EQ(co_await timeout(events.next(), 0ms), -ETIMEDOUT);
        const std::uint64_t one = 1;
        for (int i = 0; i < 500; ++i) { // each is one event
            EXPECT_EQ(::write(counter, &one, sizeof one), 8);
            co_await some_turns(1);
        }
        std::uint64_t sum = 0;
        int taken = 0;
        for (; sum < 500 && taken < 1000; ++taken) {
            EXPECT_EQ(co_await timeout(events.next(), 10s), POLLIN);
            std::uint64_t count = 0;
            if (::read(counter, &count, sizeof count) == sizeof count) {
                sum += count;
            }
        }
        EXPECT_EQ(sum, 500U);
        int rest = 0;
        while (co_await timeout(events.next(), 5ms)) {
            ++rest;
        }
        EXPECT_LE(taken + rest, 64 + 16); // results that waited
        EXPECT_EQ(::write(counter, &one, sizeof one), 8);
        EXPECT_EQ(co_await timeout(events.next(), 10s), POLLIN);
    };
    run(main());
}

TEST_P(PollStream, IsUpdatedAndRemovedByItsKey) {
    if (!has_rings()) {
        GTEST_SKIP() << "modifying a poll needs Linux 5.13";
    }
    auto main = []() -> task<> {
        const socket_pair s;
        auto events = io::poll_multishot(s.a, POLLIN);
        EXPECT_EQ(co_await timeout(events.next(), 1ms), -ETIMEDOUT);
        auto waits = [](io::poll_stream& stream) -> task<int> { co_return co_await stream.next(); };
        auto one = coil::spawn(waits(events));
        co_await some_turns();
        EXPECT_EQ(co_await io::poll_remove(events), 0);
        EXPECT_EQ(co_await one, -ECANCELED);
        EXPECT_EQ(co_await io::poll_remove(events), -ENOENT);
        events.set_events(POLLOUT);
        EXPECT_EQ(co_await events.next(), POLLOUT);
    };
    run(main());
}

TEST_P(PollStream, AWrongDescriptorIsAnErrorEachTime) {
    auto main = []() -> task<> {
        auto events = io::poll_multishot(-1, POLLIN);
        EXPECT_EQ(co_await events.next(), -EBADF);
        EXPECT_EQ(co_await events.next(), -EBADF);
    };
    run(main());
}

TEST_P(TimeoutStream, TicksDoNotDrift) {
    auto main = []() -> task<> {
        constexpr auto interval = 2ms;
        auto ticks = io::timeout_multishot(interval);
        const auto begin = std::chrono::steady_clock::now();
        int count = 0;
        while (count < 50) {
            const auto passed = co_await ticks.next();
            EXPECT_GE(passed, 1);
            count += passed;
            // However late a tick is, no tick is counted early.
            EXPECT_GE(std::chrono::steady_clock::now() - begin, interval * count);
        }
        const auto before = std::chrono::steady_clock::now() - begin;
        std::this_thread::sleep_for(20ms); // the context is blocked meanwhile
        count += co_await ticks.next();
        // The last few ticks may be reported later; all earlier ones are counted.
        EXPECT_GE(interval * (count + 4), before + 20ms);
    };
    run(main());
}

TEST_P(TimeoutStream, MissedTicksAreCounted) {
    auto main = []() -> task<> {
        auto ticks = io::timeout_multishot(1ms);
        const auto begin = std::chrono::steady_clock::now();
        int count = co_await ticks.next();
        co_await sleep_for(50ms);
        count += co_await ticks.next();
        // The fault backend reports them later, and so does a slow thread.
        const bool late = coil_test::under_faults() || coil_test::sanitized;
        EXPECT_GE(count, late ? 2 : 50);
        // Cancelled immediately, unless a tick is available.
        const int taken = co_await timeout(ticks.next(), 0ms);
        EXPECT_TRUE(taken == -ETIMEDOUT || taken > 0) << taken;
        count += std::max(taken, 0);
        co_await sleep_for(5ms); // one tick arrives and is not taken; others are due
        count += co_await ticks.next();
        const auto before = std::chrono::steady_clock::now() - begin;
        count += co_await ticks.next();
        if (!late) {
            EXPECT_GE(1ms * (count + 1), before);
        }
        EXPECT_LE(1ms * count, std::chrono::steady_clock::now() - begin);
    };
    run(main());
}

TEST_P(TimeoutStream, AnIntervalOfZeroHasAlwaysElapsed) {
    auto main = []() -> task<> {
        auto ticks = io::timeout_multishot(0ns);
        for (int i = 0; i < 5; ++i) {
            EXPECT_GE(co_await ticks.next(), 1);
        }
    };
    run(main());
}

TEST_P(TimeoutStream, G3_AnIntervalThatNeverElapsesIsDestroyed) {
    auto main = []() -> task<> {
        auto never = io::timeout_multishot(std::chrono::hours::max());
        EXPECT_EQ(co_await timeout(never.next(), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(never.next(), 1ms), -ETIMEDOUT);
    };
    run(main());
}

} // namespace
