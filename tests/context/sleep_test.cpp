// Sleeping: order, precision, cancellation, and unusual durations.

#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <limits>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;

namespace {

class Sleep : public ::testing::Test {};

TEST_F(Sleep, NeverEarlyAndNotMuchTooLate) {
    auto main = []() -> task<> {
        for (const auto span : {0us, 1us, 33us, 100us, 1000us, 5000us, 20000us}) {
            const auto begin = steady_clock::now();
            EXPECT_EQ(co_await sleep_for(span), 0);
            const auto took = steady_clock::now() - begin;
            EXPECT_GE(took, span);
            EXPECT_LT(took, span + 500ms);
        }
    };
    coil::run(main());
}

TEST_F(Sleep, WakesInTheOrderOfDeadlinesWhateverTheOrderOfSleeping) {
    std::vector<int> order;
    auto nap = [](int n, steady_clock::time_point zero, std::vector<int>& to) -> task<> {
        co_await sleep_until(zero + n * 1ms);
        to.push_back(n);
    };
    io_context ctx;
    const auto zero = steady_clock::now() + 50ms; // all of them have started by then
    for (const int n : {7, 3, 9, 1, 5, 8, 2, 6, 4, 0}) {
        ctx.co_spawn(nap(n, zero, order));
    }
    ctx.run();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(Sleep, EqualDeadlinesWakeInTheOrderOfSleeping) {
    std::vector<int> order;
    auto nap = [](int n, steady_clock::time_point when, std::vector<int>& to) -> task<> {
        co_await sleep_until(when);
        to.push_back(n);
    };
    io_context ctx;
    const auto when = steady_clock::now() + 3ms;
    for (int n = 0; n < 10; ++n) {
        ctx.co_spawn(nap(n, when, order));
    }
    ctx.run();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(Sleep, SleepsUntilATimeOfTheSystemClock) {
    auto main = []() -> task<> {
        const auto when = system_clock::now() + 5ms;
        EXPECT_EQ(co_await sleep_until(when), 0);
        EXPECT_GE(system_clock::now() + 1ms, when); // the system clock may have been set meanwhile
    };
    coil::run(main());
}

TEST_F(Sleep, ADeadlineInThePastEndsAtOnce) {
    auto main = []() -> task<> {
        const auto begin = steady_clock::now();
        EXPECT_EQ(co_await sleep_for(-5s), 0);
        EXPECT_EQ(co_await sleep_for(std::chrono::hours::min()), 0);
        EXPECT_EQ(co_await sleep_until(steady_clock::time_point()), 0);
        EXPECT_EQ(co_await sleep_until(steady_clock::time_point::min()), 0);
        EXPECT_EQ(co_await sleep_until(steady_clock::now() - 1h), 0);
        EXPECT_EQ(co_await sleep_until(system_clock::time_point()), 0);
        EXPECT_EQ(co_await sleep_until(system_clock::time_point::min()), 0);
        EXPECT_LT(steady_clock::now() - begin, 1s);
    };
    coil::run(main());
}

TEST_F(Sleep, ForeverDoesNotEnd) {
    auto forever = [](int which) -> task<int> {
        switch (which) {
        case 0:
            co_return co_await sleep_for(std::chrono::hours::max());
        case 1:
            co_return co_await sleep_for(steady_clock::duration::max());
        case 2:
            co_return co_await sleep_for(std::chrono::duration<double>(1e300));
        case 3:
            co_return co_await sleep_until(steady_clock::time_point::max());
        default:
            co_return co_await sleep_until(system_clock::time_point::max());
        }
    };
    auto main = [](auto f) -> task<> {
        std::vector<join_handle<int>> handles;
        for (int which = 0; which < 5; ++which) {
            handles.push_back(coil::spawn(f(which)));
        }
        co_await sleep_for(20ms);
        for (auto& h : handles) {
            EXPECT_FALSE(h.done());
            h.cancel();
            EXPECT_EQ(co_await h, -ECANCELED);
        }
    };
    coil::run(main(forever));
}

TEST_F(Sleep, FractionalDurationsAndNaN) {
    auto main = []() -> task<> {
        const auto begin = steady_clock::now();
        EXPECT_EQ(co_await sleep_for(std::chrono::duration<double>(0.003)), 0);
        EXPECT_GE(steady_clock::now() - begin, 3ms);
        EXPECT_EQ(co_await sleep_for(std::chrono::duration<float, std::milli>(0.5F)), 0);
        EXPECT_EQ(co_await sleep_for(
                      std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())),
                  0);
        EXPECT_LT(steady_clock::now() - begin, 2s);
    };
    coil::run(main());
}

TEST_F(Sleep, TimeoutWithoutAnOperationIsASleep) {
    auto main = []() -> task<> {
        const auto begin = steady_clock::now();
        EXPECT_EQ(co_await timeout(2ms), 0);
        EXPECT_EQ(co_await timeout_at(steady_clock::now() + 2ms), 0);
        EXPECT_GE(steady_clock::now() - begin, 4ms);
    };
    coil::run(main());
}

TEST_F(Sleep, G3_AStopCancelsThisSleepAndAllLaterOnes) {
    auto naps = []() -> task<int> {
        EXPECT_EQ(co_await sleep_for(24h), -ECANCELED);
        const auto begin = steady_clock::now();
        EXPECT_EQ(co_await sleep_for(24h), -ECANCELED);
        EXPECT_EQ(co_await io::nop(), -ECANCELED);
        EXPECT_LT(steady_clock::now() - begin, 1s);
        co_return 1;
    };
    auto main = [](auto f) -> task<int> {
        auto handle = coil::spawn(f());
        co_await sleep_for(1ms);
        handle.cancel();
        co_return co_await handle;
    };
    EXPECT_EQ(coil::run(main(naps)), 1);
}

TEST_F(Sleep, DestroyedWhileItSleeps) {
    auto nap = []() -> coil_test::manual { co_await sleep_for(2ms); };
    auto main = [](auto f) -> task<> {
        {
            const coil_test::manual m = f();
            m.start();
        }
        {
            // Woken but not resumed yet: the frame is destroyed while it is in the ready queue.
            coil_test::manual m = f();
            m.start();
            auto killer = [](coil_test::manual& victim) -> task<> {
                const auto until = steady_clock::now() + 3ms;
                while (steady_clock::now() < until) {
                }
                co_await yield();
                victim.destroy();
            };
            co_await killer(m);
        }
        co_await sleep_for(5ms);
    };
    coil::run(main(nap));
}

TEST_F(Sleep, DenseTimersShareWakeUps) {
    COIL_SKIP_UNDER_FAULTS("it counts sleeps, and some are interrupted");
    auto nap = [](steady_clock::time_point when) -> task<> { co_await sleep_until(when); };
    io_context ctx;
    const auto zero = steady_clock::now() + 50ms; // all of them have started by then
    for (int n = 0; n < 2000; ++n) {
        ctx.co_spawn(nap(zero + n * 10us));
    }
    ctx.run();
    // One more wake-up for deadlines before `zero`, one because the division rounds down. A slow
    // machine needs fewer wake-ups, so slowness cannot make this fail.
    const auto took = steady_clock::now() - zero;
    EXPECT_LE(ctx.metrics().parks, static_cast<std::uint64_t>(took / 100us) + 2);
}

TEST_F(Sleep, TenThousandSleepersAllWake) {
    int woken = 0;
    auto nap = [](int i, int& n) -> task<> {
        co_await sleep_for((i * 37 % 50) * 1ms);
        ++n;
    };
    io_context ctx;
    for (int i = 0; i < 10'000; ++i) {
        ctx.co_spawn(nap(i, woken));
    }
    ctx.run();
    EXPECT_EQ(woken, 10'000);
}

} // namespace
