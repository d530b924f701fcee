#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

class Metrics : public ::testing::Test {};

void work_for(std::chrono::nanoseconds time) {
    const auto end = steady_clock::now() + time;
    while (steady_clock::now() < end) {
    }
}

task<> yields_until(const bool& done) {
    while (!done) {
        co_await yield();
    }
}

task<> nops(int n) {
    for (int i = 0; i < n; ++i) {
        co_await io::nop();
    }
}

TEST_F(Metrics, TasksAreCountedFromTheirStartToTheirEnd) {
    io_context ctx;
    auto checks = []() -> task<> {
        auto naps = [](std::chrono::nanoseconds d) -> task<> { co_await sleep_for(d); };
        co_spawn(naps(1h));
        co_spawn(naps(1h));
        co_spawn(nops(0));
        co_await spawn(naps(0s));
        co_await sleep_for(1ms);
        const context_metrics m = this_context().metrics();
        EXPECT_EQ(m.tasks, 3U); // this task and two that sleep
        EXPECT_EQ(m.tasks_started, 5U);
        EXPECT_EQ(m.timers, 2U);
        this_context().stop();
    };
    EXPECT_EQ(ctx.metrics().tasks, 0U);
    ctx.co_spawn(checks());
    ctx.run();
    EXPECT_EQ(ctx.metrics().tasks, 0U);
    EXPECT_EQ(ctx.metrics().timers, 0U);
    EXPECT_EQ(ctx.metrics().tasks_started, 5U);
}

TEST_F(Metrics, AContextInsideOfAnotherCountsForItself) {
    io_context outer;
    std::uint64_t seen = 0;
    auto nests = [](std::uint64_t& tasks) -> task<> {
        {
            io_context inner;
            for (int i = 0; i < 10; ++i) {
                inner.co_spawn(nops(1));
            }
            inner.run();
            EXPECT_EQ(inner.metrics().tasks, 0U);
            EXPECT_EQ(inner.metrics().tasks_started, 10U);
            inner.co_spawn(nops(1)); // never run
        }
        co_await yield();
        co_await sleep_for(1ms);
        tasks = this_context().metrics().tasks;
    };
    outer.co_spawn(nests(seen));
    outer.run();
    EXPECT_EQ(seen, 1U);
    EXPECT_EQ(outer.metrics().tasks, 0U);
    EXPECT_EQ(outer.metrics().tasks_started, 1U);
}

TEST_F(Metrics, ReadyIsTheLengthOfTheQueueHoweverLong) {
    for (const std::uint64_t others : {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{5000}}) {
        io_context ctx;
        bool done = false;
        std::uint64_t ready = 0;
        auto looks = [](bool& flag, std::uint64_t& seen) -> task<> {
            for (int i = 0; i < 3; ++i) {
                co_await yield();
            }
            seen = this_context().metrics().ready;
            flag = true;
        };
        for (std::uint64_t i = 0; i < others; ++i) {
            ctx.co_spawn(yields_until(done));
        }
        ctx.co_spawn(looks(done, ready));
        ctx.run();
        EXPECT_EQ(ready, others + 1);
        EXPECT_EQ(ctx.metrics().ready, 0U);
    }
}

TEST_F(Metrics, InFlightAndTimersAreThoseOfTheLastTurn) {
    io_context ctx;
    const coil_test::pipe_pair p;
    auto reads = [](int fd) -> task<> {
        char c;
        co_await io::read(fd, {&c, 1});
    };
    auto looks = [](int fd) -> task<> {
        co_await sleep_for(1ms);
        EXPECT_EQ(this_context().metrics().in_flight, 1U);
        EXPECT_EQ(this_context().metrics().timers, 0U); // fired in the turn before
        co_await io::write(fd, "x");
    };
    ctx.co_spawn(reads(p.in));
    ctx.co_spawn(looks(p.out));
    ctx.run();
    EXPECT_EQ(ctx.metrics().in_flight, 0U);
}

TEST_F(Metrics, EntersSubmissionsAndCompletions) {
    COIL_SKIP_UNDER_FAULTS("it counts completions in an enter");
    io_context ctx;
    for (int i = 0; i < 10; ++i) {
        ctx.co_spawn(nops(100));
    }
    ctx.run();
    const context_metrics m = ctx.metrics();
    EXPECT_GE(m.submissions, 1000U);
    EXPECT_GE(m.completions, 1000U);
    EXPECT_NEAR(m.submissions_per_enter(), 10.0, 1.0);
    EXPECT_NEAR(m.completions_per_enter(), 10.0, 1.0);
    EXPECT_EQ(context_metrics{}.submissions_per_enter(), 0.0);
}

TEST_F(Metrics, MessagesToAContextThatIsAwakeElideTheWakeUp) {
    io_context ctx;
    std::latch busy(1);
    std::latch posted(1);
    auto blocks = [](std::latch& here, std::latch& there) -> task<> {
        here.count_down();
        there.wait();
        co_return;
    };
    ctx.co_spawn(blocks(busy, posted));
    std::thread other([&] {
        busy.wait();
        for (int i = 0; i < 100; ++i) {
            ctx.co_spawn(nops(1));
        }
        posted.count_down();
    });
    const std::uint64_t before = ctx.metrics().wake_ups_elided;
    ctx.run();
    other.join();
    // The first message arrived before run().
    EXPECT_EQ(ctx.metrics().wake_ups_elided - before, 101U);
    EXPECT_EQ(ctx.metrics().wake_ups_sent, 0U);
}

TEST_F(Metrics, AMessageToASleepingContextCountsAsAWakeUpSent) {
    COIL_SKIP_UNDER_FAULTS("it relies on a sleep that nothing interrupts");
    io_context ctx(coil_test::with([](auto& o) { o.idle = idle_policy::park(); }));
    ctx.start();
    for (std::uint64_t round = 1; round <= 20; ++round) {
        // The context sleeps, or has announced that it will. Only the message can wake it.
        while (ctx.metrics().parks < round) {
            std::this_thread::yield();
        }
        auto sent = []() -> task<std::uint64_t> {
            co_return this_context().metrics().wake_ups_sent;
        };
        EXPECT_EQ(ctx.spawn(sent()).get(), round);
        EXPECT_EQ(ctx.metrics().wake_ups_elided, 0U);
    }
    ctx.stop();
    ctx.join();
}

TEST_F(Metrics, ATurnThatBlocksIsMeasured) {
    for (const int others : {0, 1, 1000}) {
        io_context ctx;
        bool done = false;
        auto blocks = [](bool& flag) -> task<> {
            co_await nops(500);
            work_for(5ms);
            co_await nops(500);
            flag = true;
        };
        for (int i = 0; i < others; ++i) {
            ctx.co_spawn(yields_until(done));
        }
        ctx.co_spawn(blocks(done));
        const auto begin = steady_clock::now();
        ctx.run();
        const auto took = steady_clock::now() - begin;
        const context_metrics m = ctx.metrics();
        EXPECT_GE(m.longest_turn, 5ms - 32us) << others;
        EXPECT_LE(m.longest_turn, took);
        EXPECT_GE(m.turn_length.quantile(1), 4'900'000U);
        EXPECT_GE(m.turn_length.sum(), 5'000'000U);
        EXPECT_LE(std::chrono::nanoseconds(m.turn_length.sum()), took);
        EXPECT_GE(m.turn_length.count(), 1000U); // at least one turn for each nop
    }
}

TEST_F(Metrics, SleepingIsNotATurn) {
    for (const idle_policy policy :
         {idle_policy::park(), idle_policy::spin(50us), idle_policy::batch(8, 100us)}) {
        io_context ctx(coil_test::with([&](auto& o) { o.idle = policy; }));
        auto naps = []() -> task<> {
            for (int i = 0; i < 10; ++i) {
                co_await sleep_for(20ms);
            }
        };
        const auto begin = steady_clock::now();
        ctx.co_spawn(naps());
        ctx.run();
        const auto took = steady_clock::now() - begin;
        const context_metrics m = ctx.metrics();
        EXPECT_GE(m.turn_length.count(), 10U);
        EXPECT_LE(std::chrono::nanoseconds(m.turn_length.sum()), took - 190ms);
    }
}

TEST_F(Metrics, AShutdownIsNotATurn) {
    io_context ctx;
    struct slow {
        ~slow() { work_for(100ms); }
    };
    auto ends_slowly = []() -> task<> {
        const slow at_end;
        co_await sleep_for(1h);
    };
    auto stops = []() -> task<> {
        co_await yield();
        this_context().stop();
    };
    ctx.co_spawn(ends_slowly());
    ctx.co_spawn(stops());
    ctx.run();
    EXPECT_LT(ctx.metrics().turn_length.sum(), 100'000'000U);
}

/// Runs for `time` at each resumption, so the last coroutine in the queue waits for all others.
task<> takes_turns(std::chrono::nanoseconds time, const bool& done) {
    while (!done) {
        work_for(time);
        co_await yield();
    }
}

TEST_F(Metrics, ReadyDelayIsThatOfTheLastInTheQueue) {
    constexpr auto slice = 20us;
    constexpr int many = 20;
    io_context ctx;
    bool done = false;
    auto ends = [](bool& flag) -> task<> {
        while (this_context().metrics().ready_delay.count() < 3) {
            co_await yield();
        }
        flag = true;
    };
    for (int i = 0; i < many; ++i) {
        ctx.co_spawn(takes_turns(slice, done));
    }
    ctx.co_spawn(ends(done));
    ctx.run();
    const log2_histogram delay = ctx.metrics().ready_delay;
    EXPECT_GE(delay.count(), 3U);
    const auto least =
        static_cast<std::uint64_t>(std::chrono::nanoseconds((many - 1) * slice).count());
    for (std::size_t i = 0; i < log2_histogram::bucket_of(least); ++i) {
        EXPECT_EQ(delay.bucket(i), 0U) << i;
    }
    EXPECT_GE(delay.sum(), 3 * least);
}

TEST_F(Metrics, ReadyDelayOfALoneCoroutineIsSmall) {
    io_context ctx;
    ctx.co_spawn(nops(1000));
    ctx.run();
    EXPECT_GE(ctx.metrics().ready_delay.count(), 1000U / 127U);
    EXPECT_LT(ctx.metrics().ready_delay.quantile(0.5), 1'000'000U);
}

TEST_F(Metrics, ReadyDelayMaySpanSeveralTurns) {
    io_context ctx;
    bool done = false;
    auto ends = [](bool& flag) -> task<> {
        while (this_context().metrics().ready_delay.count() < 10) {
            co_await yield();
        }
        flag = true;
    };
    for (int i = 0; i < 5000; ++i) {
        ctx.co_spawn(yields_until(done));
    }
    ctx.co_spawn(ends(done));
    ctx.run();
    EXPECT_GE(ctx.metrics().ready_delay.count(), 10U);
}

/// Values that are read during the run never decrease. ThreadSanitizer checks the accesses.
TEST_F(Metrics, G9_AnyThreadReadsThemAtAnyTime) {
    io_context ctx;
    std::atomic<bool> over{false};
    std::latch reading(1);
    std::thread reader([&] {
        context_metrics last;
        bool first = true;
        std::string text;
        while (!over.load()) {
            const context_metrics now = ctx.metrics();
            EXPECT_GE(now.enters, last.enters);
            EXPECT_GE(now.submissions, last.submissions);
            EXPECT_GE(now.completions, last.completions);
            EXPECT_GE(now.parks, last.parks);
            EXPECT_GE(now.spins, last.spins);
            EXPECT_GE(now.wake_ups_sent, last.wake_ups_sent);
            EXPECT_GE(now.wake_ups_elided, last.wake_ups_elided);
            EXPECT_GE(now.tasks_started, last.tasks_started);
            EXPECT_GE(now.back_pressure_waits, last.back_pressure_waits);
            EXPECT_GE(now.longest_turn, last.longest_turn);
            EXPECT_GE(now.turn_length.count(), last.turn_length.count());
            EXPECT_GE(now.ready_delay.count(), last.ready_delay.count());
            EXPECT_LE(now.tasks, now.tasks_started + 100);
            text.clear();
            write_prometheus(text, now);
            EXPECT_FALSE(to_string(now).empty());
            last = now;
            if (std::exchange(first, false)) {
                reading.count_down();
            }
        }
    });
    reading.wait();
    auto works = []() -> task<> {
        for (int i = 0; i < 200; ++i) {
            co_spawn(nops(2));
            co_await sleep_for(10us);
            co_await yield();
        }
    };
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 10; ++i) {
            ctx.co_spawn(works());
        }
        ctx.run();
    }
    over = true;
    reader.join();
    const context_metrics m = ctx.metrics();
    EXPECT_EQ(m.tasks_started, 5U * 10U * 201U);
    EXPECT_EQ(m.tasks, 0U);
}

TEST_F(Metrics, BackPressureDoesNotCountOperationsThatOvertake) {
    // A cancellation that overtakes held-back operations did not wait, and is never counted.
    io_context ctx(coil_test::with([](auto& o) { o.max_in_flight = 1; }));
    const coil_test::pipe_pair p;
    auto reads = [](int fd) -> task<> {
        char c;
        EXPECT_EQ(co_await io::read(fd, {&c, 1}), -ECANCELED);
    };
    auto cancels = [](int fd) -> task<> {
        co_await yield();
        co_await yield();
        EXPECT_GE(co_await io::cancel(fd), 0);
    };
    ctx.co_spawn(reads(p.in));
    ctx.co_spawn(cancels(p.in));
    ctx.run();
    EXPECT_EQ(ctx.metrics().back_pressure_waits, 0U);
}

TEST(MetricsText, ContainsTheFigures) {
    context_metrics m;
    m.tasks = 3;
    m.enters = 4;
    m.submissions = 10;
    m.completions = 6;
    m.longest_turn = 1500us;
    m.turn_length.add(1000, 99);
    m.turn_length.add(1'500'000);
    const std::string text = to_string(m);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
    for (const char* part : {"tasks: 3 (", "enters: 4 (2.50 SQEs, 1.50 CQEs each)",
                             "turns: 100, mean 16 µs", "median ≤ 1.02 µs", "99 % ≤ 1.02 µs",
                             "99.9 % ≤ 2.1 ms", "longest 1.5 ms", "ready delay: 0 samples"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
}

} // namespace
