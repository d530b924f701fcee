// context_clock: the world's time in a world, the machine's time elsewhere.

#include "support.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <vector>

using namespace coil;
using namespace sim_test;

namespace {

static_assert(std::chrono::is_clock_v<context_clock>);

TEST(ContextClock, ShowsTheTimeOfTheWorld) {
    sim::world w(1);
    const auto seen = run_in(w, w.host("a"), []() -> task<context_clock::duration> {
        const auto begin = context_clock::now();
        co_await sleep_until(begin + 1h);
        co_return context_clock::now() - begin;
    }());
    EXPECT_GE(seen, 1h);
    EXPECT_LT(seen, 1h + 1ms);
    EXPECT_GE(w.now(), sim::world::time_point(1s) + 1h);
}

TEST(ContextClock, AgreesWithTheWorldsOwnClock) {
    sim::world w(1);
    sim::world::duration difference = 1h;
    w.host("a").co_spawn([](sim::world& all, sim::world::duration& d) -> task<> {
        co_await sleep_for(3s);
        d = context_clock::now() - all.now();
    }(w, difference));
    w.run();
    EXPECT_LE(difference, 10us);
    EXPECT_GE(difference, -10us);
}

TEST(ContextClock, WorkOfABlockingPoolSeesTheTimeOfTheWorld) {
    sim::world w(1);
    const auto late = run_in(w, w.host("a"), []() -> task<context_clock::duration> {
        co_await sleep_for(10h);
        const auto begin = context_clock::now();
        const auto there = co_await blocking([] { return context_clock::now(); });
        co_return there - begin;
    }());
    EXPECT_GE(late, 0s);
    EXPECT_LT(late, 1s);
}

TEST(ContextClock, ATimeLimitMayBeGivenByIt) {
    sim::world w(1);
    const int result = run_in(w, w.host("a"), []() -> task<int> {
        co_return co_await timeout_at(sleep_for(1h), context_clock::now() + 1s);
    }());
    EXPECT_EQ(result, -ETIMEDOUT);
    EXPECT_LT(w.now(), sim::world::time_point(1s) + 2s);
}

TEST(ContextClock, IsTheSteadyClockOutsideOfAWorld) {
    const auto expect_real = [] {
        const auto before = std::chrono::steady_clock::now();
        const auto shown = context_clock::now();
        const auto after = std::chrono::steady_clock::now();
        EXPECT_LE(before, shown);
        EXPECT_LE(shown, after);
    };
    expect_real();
    run([](auto expect) -> task<> {
        expect();
        co_await sleep_for(1ms);
        expect();
    }(expect_real));
}

TEST(ContextClock, DelaysOfRestartsFollowIt) {
    std::vector<context_clock::time_point> starts;
    const auto fails_late = [&]() -> task<> {
        starts.push_back(context_clock::now());
        co_await sleep_for(1h);
        throw 1;
    };
    sim::world w(1);
    w.host("a").co_spawn([](auto f) -> task<> {
        supervisor s{{.on_failure = [](std::exception_ptr) {}}};
        restart_options options;
        options.initial_delay = 1s;
        options.max_delay = 1min;
        options.max_restarts = 3;
        s.spawn_restarting(f, options);
        co_await s.join();
    }(fails_late));
    w.run();
    ASSERT_EQ(starts.size(), 4U);
    for (std::size_t i = 1; i < starts.size(); ++i) {
        EXPECT_LT(starts[i] - starts[i - 1], 1h + 2s); // the delay begins anew after a long run
    }
}

} // namespace
