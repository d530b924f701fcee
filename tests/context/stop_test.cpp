// stop() and the destructor: everything in progress is cancelled, waited for, and destroyed.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <string>
#include <thread>

#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::on_destruction;

namespace {

class Stop : public ::testing::Test {};

task<> sleeps(on_destruction, bool& went_on) {
    co_await sleep_for(24h);
    went_on = true;
}
task<> reads(on_destruction, int fd, bool& went_on) {
    char c;
    co_await io::read(fd, {&c, 1});
    went_on = true;
}
task<> yields(on_destruction) {
    for (;;) {
        co_await yield();
    }
}
task<> stops(io_context& ctx, std::chrono::milliseconds after = 0ms) {
    if (after > 0ms) {
        co_await sleep_for(after);
    }
    ctx.stop();
}

TEST_F(Stop, G5_FromInside) {
    io_context ctx;
    int destroyed = 0;
    bool went_on = false;
    ctx.co_spawn(sleeps(on_destruction(destroyed), went_on));
    ctx.co_spawn(stops(ctx));
    ctx.run();
    EXPECT_EQ(destroyed, 1);
    EXPECT_FALSE(went_on);
}

TEST_F(Stop, G5_FromAnotherThreadWhileItSleeps) {
    io_context ctx;
    const coil_test::pipe_pair p;
    int destroyed = 0;
    bool went_on = false;
    ctx.co_spawn(reads(on_destruction(destroyed), p.in, went_on));
    const pid_t runner = ::gettid();
    std::thread other([&] {
        coil_test::wait_until_asleep(runner);
        ctx.stop();
    });
    ctx.run();
    other.join();
    EXPECT_EQ(destroyed, 1);
    EXPECT_FALSE(went_on);
}

TEST_F(Stop, G9_FromAnotherThreadAtAnyMoment) {
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        io_context ctx;
        int destroyed = 0;
        bool went_on = false;
        ctx.co_spawn(sleeps(on_destruction(destroyed), went_on));
        if (round % 2 == 0) {
            ctx.co_spawn(yields(on_destruction(destroyed)));
        }
        std::thread other([&] { ctx.stop(); });
        ctx.run();
        other.join();
        ASSERT_EQ(destroyed, round % 2 == 0 ? 2 : 1);
    }
}

TEST_F(Stop, G9_BeforeRun_RunShutsDownAtOnce) {
    io_context ctx;
    int destroyed = 0;
    ctx.co_spawn(yields(on_destruction(destroyed)));
    ctx.stop();
    ctx.run();
    EXPECT_EQ(destroyed, 1);
}

TEST_F(Stop, G9_ASecondStopHasNoEffect) {
    io_context ctx;
    int destroyed = 0;
    ctx.co_spawn(yields(on_destruction(destroyed)));
    ctx.co_spawn(stops(ctx));
    ctx.co_spawn(stops(ctx));
    ctx.run();
    EXPECT_EQ(destroyed, 1);
    ctx.stop();
    ctx.stop();
    ctx.run();
}

TEST_F(Stop, AfterwardsTheContextRunsAgain) {
    io_context ctx;
    const coil_test::pipe_pair p;
    int destroyed = 0;
    bool went_on = false;
    ctx.co_spawn(reads(on_destruction(destroyed), p.in, went_on));
    ctx.co_spawn(stops(ctx));
    ctx.run();
    EXPECT_EQ(destroyed, 1);

    p.put("x");
    ctx.co_spawn(reads(on_destruction(destroyed), p.in, went_on));
    ctx.run();
    EXPECT_TRUE(went_on);
}

TEST_F(Stop, G5_AThousandReadsAndAThousandTimersInFlight) {
    const coil_test::pipe_pair p;
    int destroyed = 0;
    bool went_on = false;
    {
        io_context ctx;
        for (int i = 0; i < 1000; ++i) {
            ctx.co_spawn(reads(on_destruction(destroyed), p.in, went_on));
            ctx.co_spawn(sleeps(on_destruction(destroyed), went_on));
        }
        ctx.co_spawn(stops(ctx, 5ms));
        ctx.run();
        EXPECT_EQ(destroyed, 2000);
        EXPECT_FALSE(went_on);
    }
    // The readers are gone: what is written stays in the pipe.
    p.put("left");
    char buf[8];
    EXPECT_EQ(::read(p.in, buf, sizeof buf), 4);
}

TEST_F(Stop, G5_TwentyThousandReadsInFlightTakeNoQuadraticTime) {
    // A linear search for each read would take seconds here.
    const coil_test::pipe_pair p;
    const int n = 20'000;
    int destroyed = 0;
    bool went_on = false;
    io_context ctx;
    for (int i = 0; i < n; ++i) {
        ctx.co_spawn(reads(on_destruction(destroyed), p.in, went_on));
    }
    ctx.co_spawn(stops(ctx, 1ms));
    const auto begin = coil_test::cpu_time();
    ctx.run();
    EXPECT_EQ(destroyed, n);
    EXPECT_FALSE(went_on);
    EXPECT_LT(coil_test::cpu_time() - begin, coil_test::sanitized ? 10s : 2s);
}

TEST_F(Stop, G5_WithOperationsHeldBackByBackPressure) {
    const coil_test::pipe_pair p;
    int destroyed = 0;
    bool went_on = false;
    const int n = 30'000;
    io_context ctx(coil_test::with([](auto& o) { o.max_in_flight = 4; }));
    for (int i = 0; i < n; ++i) {
        ctx.co_spawn(reads(on_destruction(destroyed), p.in, went_on));
    }
    ctx.co_spawn(stops(ctx, 5ms));
    const auto begin = std::chrono::steady_clock::now();
    ctx.run();
    EXPECT_EQ(destroyed, n);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, coil_test::sanitized ? 10s : 2s);
}

TEST_F(Stop, G5_DestructorOfAStartedContextStopsIt) {
    const coil_test::pipe_pair p;
    int destroyed = 0;
    bool went_on = false;
    {
        io_context ctx;
        ctx.co_spawn(reads(on_destruction(destroyed), p.in, went_on));
        ctx.co_spawn(sleeps(on_destruction(destroyed), went_on));
        ctx.start();
    }
    EXPECT_EQ(destroyed, 2);
    EXPECT_FALSE(went_on);
}

TEST_F(Stop, G5_DestructorsOfLocalsMaySpawn) {
    // A destructor spawns during the shutdown: what it spawns is destroyed as well.
    int destroyed = 0;
    struct spawner {
        int* count;
        ~spawner() { coil::co_spawn(yields(on_destruction(*count))); }
    };
    auto holds = [](int& count) -> task<> {
        const spawner s{&count};
        co_await sleep_for(24h);
    };
    io_context ctx;
    ctx.co_spawn(holds(destroyed));
    ctx.co_spawn(stops(ctx, 1ms));
    ctx.run();
    EXPECT_EQ(destroyed, 1);
}

TEST_F(Stop, G5_AwaitedTasksAreDestroyedWithTheirAwaiters) {
    static std::string order;
    order.clear();
    struct speaking {
        char name;
        ~speaking() { order += name; }
    };
    auto inner = []() -> task<> {
        const speaking s{'i'};
        co_await sleep_for(24h);
    };
    auto outer = [](auto f) -> task<> {
        const speaking s{'o'};
        co_await f();
    };
    io_context ctx;
    ctx.co_spawn(outer(inner));
    ctx.co_spawn(stops(ctx, 1ms));
    ctx.run();
    EXPECT_EQ(order, "io");
}

TEST_F(Stop, G5_ChildrenDieBeforeTheParentThatSpawnedThem) {
    // A child may refer to its parent's frame in its destructor.
    struct toucher {
        int* target;
        ~toucher() { ++*target; }
    };
    static int seen;
    auto child = [](int& target) -> task<> {
        const toucher t{&target};
        co_await sleep_for(24h);
    };
    auto parent = [](auto f) -> task<> {
        struct reporter {
            int n = 0;
            ~reporter() { seen = n; }
        } local;
        coil::co_spawn(f(local.n));
        coil::co_spawn(f(local.n));
        co_await sleep_for(24h);
    };
    io_context ctx;
    ctx.co_spawn(parent(child));
    ctx.co_spawn(stops(ctx, 1ms));
    ctx.run();
    EXPECT_EQ(seen, 2);
}

} // namespace
