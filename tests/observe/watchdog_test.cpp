// The watchdog: names the code that blocks a context while it is still blocking.

#include "support.hpp"

#include <atomic>
#include <barrier>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;
using coil_test::sanitized;
using kind = stall_report::kind;

/// Collects reports.
class collected {
public:
    void add(const stall_report& report) {
        const std::scoped_lock lock(mutex_);
        reports_.push_back(report);
    }
    [[nodiscard]] std::vector<stall_report> all() const {
        const std::scoped_lock lock(mutex_);
        return reports_;
    }
    /// Without the reports that only announce the end of a turn.
    [[nodiscard]] std::vector<stall_report> of(kind what) const {
        std::vector<stall_report> some;
        for (stall_report& report : all()) {
            if (report.what == what && !is_end(report)) {
                some.push_back(std::move(report));
            }
        }
        return some;
    }
    [[nodiscard]] std::vector<stall_report> ends() const {
        std::vector<stall_report> some;
        for (stall_report& report : all()) {
            if (is_end(report)) {
                some.push_back(std::move(report));
            }
        }
        return some;
    }
    [[nodiscard]] std::size_t size() const { return all().size(); }

private:
    static bool is_end(const stall_report& report) { return report.has_ended && report.times == 1; }

    mutable std::mutex mutex_;
    std::vector<stall_report> reports_;
};

io_context_options watched(collected& to) {
    io_context_options options;
    options.name = "watched";
    options.watchdog.enabled = watchdog_options::use::on;
    options.watchdog.turn = 25ms;
    options.watchdog.interval = 0ns;
    options.watchdog.on_report = [&to](const stall_report& report) { to.add(report); };
    return options;
}

bool has_function(const std::vector<backtrace_entry>& entries, std::string_view name) {
    for (const backtrace_entry& entry : entries) {
        if (entry.function.find(name) != std::string::npos) {
            return true;
        }
    }
    return false;
}

/// ThreadSanitizer refuses to create threads in the child of a multithreaded process.
#if defined(__SANITIZE_THREAD__)
constexpr bool has_thread_sanitizer = true;
#elif defined(__has_feature)
constexpr bool has_thread_sanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool has_thread_sanitizer = false;
#endif
constexpr bool is_default = COIL_ASSERTIONS != 0 && COIL_SANITIZED == 0;

#define SKIP_WITH_THREAD_SANITIZER()                                                               \
    if (has_thread_sanitizer)                                                                      \
    GTEST_SKIP() << "ThreadSanitizer makes no threads in a child"

[[gnu::noinline]] void blocks_for(std::chrono::milliseconds time) {
    std::this_thread::sleep_for(time);
    asm volatile("" ::: "memory"); // no tail call
}

[[gnu::noinline]] void computes_for(std::chrono::milliseconds time) {
    const auto end = coil_test::cpu_time(CLOCK_THREAD_CPUTIME_ID) + time;
    while (coil_test::cpu_time(CLOCK_THREAD_CPUTIME_ID) < end) {
        asm volatile("" ::: "memory");
    }
    asm volatile("" ::: "memory");
}

task<> inner_that_blocks(std::chrono::milliseconds time) {
    co_await yield();
    blocks_for(time);
}
task<> outer_that_waits(std::chrono::milliseconds time) { co_await inner_that_blocks(time); }

class Watchdog : public testing::TestWithParam<io_backend> {
protected:
    [[nodiscard]] io_context_options options() {
        io_context_options all = watched(reports);
        all.backend = GetParam();
        return all;
    }

    collected reports;
};

INSTANTIATE_TEST_SUITE_P(Backends, Watchdog,
                         testing::Values(io_backend::io_uring, io_backend::epoll),
                         [](const auto& given) {
                             return given.param == io_backend::epoll ? "epoll" : "io_uring";
                         });

TEST_P(Watchdog, NamesTheFunctionThatBlocksWhileItDoes) {
    io_context ctx(options());
    bool was_early = false;
    const auto line = static_cast<unsigned>(__LINE__) + 1;
    ctx.co_spawn(outer_that_waits(coil_test::sanitized ? 1200ms : 300ms), "the slow one");
    ctx.co_spawn([](collected& seen, bool& early) -> task<> {
        co_await yield();
        co_await yield(); // behind the task that blocks
        early = seen.size() > 0;
    }(reports, was_early));
    ctx.run();
    EXPECT_TRUE(was_early) << "the report came after the turn";
    const auto found = reports.of(kind::long_turn);
    ASSERT_EQ(found.size(), 1U);
    const stall_report& report = found.front();
    EXPECT_EQ(report.where, "watched");
    EXPECT_GE(report.duration, 25ms);
    EXPECT_TRUE(has_function(report.stack, "blocks_for")) << to_string(report);
    EXPECT_TRUE(has_function(report.stack, "inner_that_blocks")) << to_string(report);
    EXPECT_FALSE(has_function(report.stack, "run_ready")) << to_string(report);
    EXPECT_EQ(report.task, "the slow one") << to_string(report);
    ASSERT_TRUE(report.spawned_at);
    EXPECT_EQ(report.spawned_at->line(), line);
    ASSERT_EQ(report.awaits.size(), 2U) << to_string(report);
    EXPECT_TRUE(has_function({report.awaits[0]}, "inner_that_blocks")) << to_string(report);
    EXPECT_TRUE(has_function({report.awaits[1]}, "outer_that_waits")) << to_string(report);
    const std::string text = to_string(report);
    EXPECT_EQ(count_of(text, "context watched: a coroutine has blocked the thread for"), 1U);
    EXPECT_EQ(count_of(text, "task 'the slow one' spawned at"), 1U) << text;
    EXPECT_EQ(ctx.metrics().long_turns, 1U);
    EXPECT_EQ(ctx.metrics().await_loops, 0U);

    const auto ends = reports.ends();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].what, kind::long_turn);
    EXPECT_GE(ends[0].duration, coil_test::sanitized ? 1200ms : 300ms);
    EXPECT_EQ(ends[0].duration, ctx.metrics().longest_turn);
    EXPECT_GE(ends[0].longest, ends[0].duration); // of all contexts of the process
    EXPECT_EQ(ends[0].stack, report.stack);
    EXPECT_EQ(ends[0].awaits, report.awaits);
    EXPECT_EQ(ends[0].task, "the slow one");
    EXPECT_EQ(count_of(to_string(ends[0]), "a coroutine blocked the thread for "), 1U);
}

/// run() ends with the turn, and returns when the end has been reported. On a loaded machine, the
/// watchdog may have seen the beginning of the turn too late to take the loop's own measurement.
TEST_P(Watchdog, ReportsTheEndOfTheLastTurn) {
    for (std::size_t i = 1; i <= 5; ++i) {
        io_context ctx(options());
        ctx.co_spawn([]() -> task<> {
            blocks_for(coil_test::sanitized ? 400ms : 60ms);
            co_return;
        }());
        ctx.run();
        ASSERT_EQ(reports.of(kind::long_turn).size(), i);
        ASSERT_EQ(reports.ends().size(), i);
        const std::chrono::nanoseconds longest = ctx.metrics().longest_turn;
        EXPECT_LE(reports.ends().back().duration, longest + 100ms);
        EXPECT_GE(reports.ends().back().duration, longest - 100ms);
    }
}

/// Both are resumed in one turn.
TEST_P(Watchdog, ReportsHowLongEachCoroutineOfATurnHasBlocked) {
    static constexpr std::chrono::milliseconds each{coil_test::sanitized ? 1500 : 300};
    io_context ctx(options());
    for (const char* const name : {"first", "second"}) {
        ctx.co_spawn(
            []() -> task<> {
                blocks_for(each);
                co_return;
            }(),
            name);
    }
    ctx.run();
    EXPECT_GE(ctx.metrics().longest_turn, 2 * each);
    const auto ends = reports.ends();
    ASSERT_EQ(ends.size(), 2U);
    for (const stall_report& end : ends) {
        EXPECT_GE(end.duration, each * 3 / 4) << to_string(end);
        EXPECT_LT(end.duration, each * 7 / 4) << to_string(end);
    }
    EXPECT_EQ(ends[0].task, "first");
    EXPECT_EQ(ends[1].task, "second");
}

/// Contexts of several threads end while the watchdog is busy with other contexts.
TEST_P(Watchdog, EachReportedTurnHasItsEnd) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < coil_test::rounds(10, 100); ++round) {
                io_context_options some = options();
                some.watchdog.turn = 1ms;
                io_context ctx(std::move(some));
                ctx.co_spawn(inner_that_blocks(std::chrono::milliseconds(2 + round % 20)));
                ctx.run();
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    EXPECT_FALSE(reports.of(kind::long_turn).empty());
    EXPECT_EQ(reports.ends().size(), reports.of(kind::long_turn).size());
}

TEST_P(Watchdog, NamesComputations) {
    io_context ctx(options());
    ctx.co_spawn(
        []() -> task<> {
            co_await yield();
            computes_for(100ms);
        }(),
        "computing");
    ctx.run();
    const auto found = reports.of(kind::long_turn);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(has_function(found[0].stack, "computes_for")) << to_string(found[0]);
    EXPECT_EQ(found[0].task, "computing");
}

/// A sleep that the signal of the watchdog ends early; the turn ends with it.
[[gnu::noinline]] void sleeps_until_a_signal(std::chrono::microseconds time) {
    ::usleep(static_cast<::useconds_t>(time.count()));
    asm volatile("" ::: "memory"); // no tail call
}

// mistake 10: a call that blocks the thread, in debug builds
// shows: `a coroutine has blocked the thread for ...`, with the stack and the task, while it lasts
TEST_P(Watchdog, ReportsACallThatItsSignalEnds) {
    constexpr std::size_t times = 5;
    for (std::size_t i = 1; i <= times; ++i) {
        io_context ctx(options());
        ctx.co_spawn(
            []() -> task<> {
                sleeps_until_a_signal(10s);
                co_return;
            }(),
            "sleeper");
        const auto begin = std::chrono::steady_clock::now();
        ctx.run();
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s); // no signal has ended the sleep
        const auto reports_so_far = reports.of(kind::long_turn);
        ASSERT_EQ(reports_so_far.size(), i);
        const stall_report& report = reports_so_far.back();
        EXPECT_GE(report.duration, 25ms);
        EXPECT_EQ(report.task, "sleeper");
        if (!sanitized) { // a sanitizer runs the handler after the call, in its own frames
            EXPECT_TRUE(has_function(report.stack, "sleeps_until_a_signal")) << to_string(report);
        }
    }
}

TEST_P(Watchdog, ReportsNoIdleContextAndNoShortTurn) {
    io_context ctx(options());
    ctx.co_spawn([]() -> task<> {
        for (int i = 0; i < 20; ++i) {
            co_await sleep_for(10ms);
            computes_for(1ms);
        }
    }());
    ctx.start();
    std::this_thread::sleep_for(100ms);
    ctx.stop();
    ctx.join();
    io_context idle(options());
    idle.co_spawn([]() -> task<> { co_await sleep_for(200ms); }());
    idle.run();
    // A machine under heavy load may delay a turn.
    for (const stall_report& report : reports.of(kind::long_turn)) {
        ADD_FAILURE() << to_string(report);
    }
    EXPECT_EQ(idle.metrics().long_turns, 0U);
}

/// Threads that wait for signals, as signal_set does, block the watchdog's signal as well.
TEST_P(Watchdog, ReachesThreadsThatBlockSignals) {
    ::sigset_t all;
    ::sigset_t before;
    ::sigset_t after;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    io_context ctx(options());
    ctx.co_spawn(inner_that_blocks(150ms));
    ctx.run();
    ::pthread_sigmask(SIG_SETMASK, &before, &after);
    const auto found = reports.of(kind::long_turn);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(has_function(found[0].stack, "blocks_for")) << to_string(found[0]);
    EXPECT_TRUE(found[0].task.empty());
    if (found[0].spawned_at) {
        EXPECT_EQ(count_of(to_string(found[0]), "\n  task spawned at " __FILE__), 1U)
            << to_string(found[0]);
    }
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
        EXPECT_EQ(::sigismember(&after, signal), 1) << signal;
    }
}

TEST_P(Watchdog, WithoutInterruptionsThereIsNoStack) {
    io_context_options some = options();
    some.watchdog.interrupts = false;
    io_context ctx(std::move(some));
    bool was_interrupted = true;
    ctx.co_spawn([](bool& interrupted) -> task<> {
        ::timespec rest{};
        const ::timespec time{0, 120'000'000};
        interrupted = ::nanosleep(&time, &rest) != 0;
        co_return;
    }(was_interrupted));
    ctx.run();
    EXPECT_FALSE(was_interrupted);
    const auto found = reports.of(kind::long_turn);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].stack.empty());
}

/// One function, and so one place, for each backend: the limit applies to the whole process.
template <io_backend>
task<> blocks_four_times_and_computes() {
    for (int i = 0; i < 4; ++i) {
        co_await yield();
        blocks_for(250ms);
    }
    co_await yield();
    computes_for(250ms); // another place
    co_await sleep_for(3200ms);
}

/// One report per place and interval; others are counted, and reported when the interval is over.
TEST_P(Watchdog, LimitsTheRateAndCountsByPlace) {
    io_context_options some = options();
    some.watchdog.interval = 3s;
    io_context ctx(std::move(some));
    ctx.co_spawn(GetParam() == io_backend::epoll
                     ? blocks_four_times_and_computes<io_backend::epoll>()
                     : blocks_four_times_and_computes<io_backend::io_uring>());
    ctx.run();
    std::vector<stall_report> blocked;
    std::vector<stall_report> computed;
    for (const stall_report& report : reports.of(kind::long_turn)) {
        (has_function(report.stack, "blocks_for") ? blocked : computed).push_back(report);
    }
    ASSERT_EQ(computed.size(), 1U);
    EXPECT_EQ(computed[0].times, 1U);
    EXPECT_TRUE(has_function(computed[0].stack, "computes_for"));
    ASSERT_EQ(blocked.size(), 2U);
    EXPECT_EQ(blocked[0].times, 1U);
    EXPECT_FALSE(blocked[0].has_ended);
    EXPECT_EQ(blocked[1].times, 3U);
    EXPECT_TRUE(blocked[1].has_ended); // it was held back until after its end
    // A part of a turn: accurate to a tick.
    EXPECT_GE(blocked[1].duration, 220ms);
    EXPECT_GE(blocked[1].longest, blocked[1].duration);
    EXPECT_EQ(count_of(to_string(blocked[1]), "(3 times)"), 1U);
    EXPECT_EQ(reports.ends().size(), 2U); // of the first one at each place
    EXPECT_EQ(ctx.metrics().long_turns, 5U);
}

task<int> at_once(int value) { co_return value; }

// Awaits of tasks that complete immediately do not use the budget of immediate awaits.
// mistake 17: a loop awaits tasks that only compute
// shows: `a task has awaited for 25 ms without suspending`, with the task and its chain of awaits
TEST_P(Watchdog, NamesATaskThatAwaitsWithoutSuspending) {
    io_context ctx(options());
    ctx.co_spawn(
        []() -> task<> {
            co_await yield();
            const auto end = coil_test::cpu_time(CLOCK_THREAD_CPUTIME_ID) + 200ms;
            while (coil_test::cpu_time(CLOCK_THREAD_CPUTIME_ID) < end) {
                co_await at_once(1);
            }
        }(),
        "greedy");
    ctx.run();
#if COIL_ASSERTIONS
    const auto found = reports.of(kind::await_loop);
    EXPECT_EQ(ctx.metrics().await_loops, 1U);
#else // cannot be distinguished from a computation
    const auto found = reports.of(kind::long_turn);
#endif
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].task, "greedy") << to_string(found[0]);
    EXPECT_EQ(ctx.metrics().long_turns, 1U);
}

task<> holds_up(std::chrono::milliseconds each, int times) {
    for (int i = 0; i < times; ++i) {
        blocks_for(each);
        co_await yield();
    }
}

/// Many short resumptions, and a long one that is within the limit of a turn.
TEST_P(Watchdog, ReportsReadyDelayAndLateTimers) {
    io_context_options some = options();
    some.watchdog.turn = 10s;
    some.watchdog.ready_delay = 30ms;
    some.watchdog.timer_delay = 30ms;
    io_context ctx(std::move(some));
    for (int i = 0; i < 30; ++i) {
        ctx.co_spawn(holds_up(1ms, 50)); // enough turns for a sample of the ready delay
    }
    // Several of these timers expire early in the long resumption, whenever it begins.
    for (int i = 1; i < 200; ++i) {
        ctx.co_spawn([](int n) -> task<> { co_await sleep_for(n * 3ms); }(i));
    }
    ctx.co_spawn(holds_up(45ms, 3));
    ctx.run();
    EXPECT_GE(ctx.metrics().late_resumptions, 1U);
    EXPECT_GE(ctx.metrics().late_timers, 1U);
    EXPECT_EQ(ctx.metrics().long_turns, 0U);
    const auto resumptions = reports.of(kind::late_resumption);
    const auto timers = reports.of(kind::late_timer);
    ASSERT_GE(resumptions.size(), 1U);
    ASSERT_GE(timers.size(), 1U);
    EXPECT_GE(resumptions[0].duration, 30ms);
    EXPECT_GE(timers[0].duration, 30ms);
}

TEST_P(Watchdog, ReportsAFullPool) {
    io_context_options some = options();
    some.watchdog.pool_delay = 50ms;
    some.watchdog.interval = 10s;
    io_context ctx(std::move(some));
    blocking_pool_options small;
    small.threads = 1;
    small.name = GetParam() == io_backend::epoll ? "pool epoll" : "pool uring";
    blocking_pool pool(small);
    for (int i = 0; i < 2; ++i) {
        ctx.co_spawn([](blocking_pool& p) -> task<> {
            co_await blocking(p, [] { std::this_thread::sleep_for(200ms); });
        }(pool));
    }
    ctx.run();
    const auto found = reports.of(kind::full_pool);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].where, small.name);
    EXPECT_GE(found[0].duration, 50ms);
    EXPECT_EQ(pool.metrics().delayed, 1U);
    EXPECT_GE(pool.metrics().full_reports, 1U);
    EXPECT_EQ(count_of(to_string(found[0]), "pool " + small.name + ": calls have waited"), 1U);
}

/// The watchdog's thread wakes up after the end of the context, and finds the pool still full.
TEST_P(Watchdog, KeepsTheReportOfAFullPoolForTheNextContext) {
    io_context_options some = options();
    some.watchdog.turn = 100ms; // the watchdog wakes up every 50 ms
    some.watchdog.pool_delay = 1ms;
    blocking_pool_options small;
    small.threads = 1;
    small.name = GetParam() == io_backend::epoll ? "left epoll" : "left uring";
    std::atomic<bool> ends = false;
    blocking_pool pool(small);
    for (int i = 0; i < 2; ++i) {
        pool.execute([&ends] { ends.wait(false); });
    }
    const auto runs_for = [&some](std::chrono::milliseconds time) {
        io_context ctx(some);
        ctx.co_spawn([](std::chrono::milliseconds t) -> task<> { co_await sleep_for(t); }(time));
        ctx.run();
    };
    runs_for(75ms); // the watchdog finds the pool full, and would report it on every wake-up
    for (int i = 0; i < 3; ++i) {
        runs_for(25ms);
        const std::size_t before = reports.size();
        std::this_thread::sleep_for(150ms);
        EXPECT_EQ(reports.size(), before); // there is no context
    }
    const std::size_t before = reports.of(kind::full_pool).size();
    runs_for(300ms);
    EXPECT_GT(reports.of(kind::full_pool).size(), before);
    ends = true;
    ends.notify_all();
}

/// Long enough for the watchdog's thread to run in the meantime.
constexpr std::chrono::milliseconds long_block{coil_test::sanitized ? 200 : 60};

/// The coroutine that the loop has resumed has ended; the one that blocks has another frame.
TEST_P(Watchdog, SurvivesCoroutinesOfAllKinds) {
    io_context ctx(options());
    ctx.co_spawn(
        []() -> task<> {
            co_await when_all(inner_that_blocks(long_block), outer_that_waits(long_block));
            scope children;
            children.spawn(inner_that_blocks(long_block), "a child");
            co_await children.join();
            co_await timeout(inner_that_blocks(long_block), 10s);
            auto numbers = []() -> async_generator<int> {
                co_await yield();
                blocks_for(long_block);
                co_yield 1;
            }();
            while (co_await numbers.next()) {
            }
            co_await inner_that_blocks(1ms);
            blocks_for(long_block);
        }(),
        "the parent");
    ctx.run();
    const auto found = reports.of(kind::long_turn);
    ASSERT_GE(found.size(), 5U);
    bool has_child = false;
    for (const stall_report& report : found) {
        EXPECT_TRUE(has_function(report.stack, "blocks_for")) << to_string(report);
        EXPECT_TRUE(report.task.empty() || report.task == "a child" || report.task == "the parent")
            << to_string(report);
        has_child = has_child || report.task == "a child";
    }
    EXPECT_TRUE(has_child);
}

/// Signals arrive while the thread allocates, spawns and ends tasks.
TEST_P(Watchdog, SurvivesSignalsAtAnyMoment) {
    io_context_options some = options();
    some.watchdog.turn = 1ms;
    io_context ctx(std::move(some));
    ctx.co_spawn(
        [](io_context& here) -> task<> {
            for (int round = 0; round < coil_test::rounds(coil_test::sanitized ? 100 : 30, 1000);
                 ++round) {
                co_await yield();
                const auto end = std::chrono::steady_clock::now() + 8ms;
                while (std::chrono::steady_clock::now() < end) {
                    here.co_spawn([]() -> task<> { co_return; }(), std::string(40, 'x'));
                    std::vector<int> memory(1000);
                    co_await [](std::vector<int>& m) -> task<> {
                        m.resize(3000);
                        co_return;
                    }(memory);
                }
            }
        }(ctx),
        "busy");
    ctx.run();
    EXPECT_GE(reports.size(), 10U);
    for (const stall_report& report : reports.all()) {
        EXPECT_TRUE(report.task == "busy" || report.task == std::string(40, 'x') ||
                    report.task.empty())
            << to_string(report);
    }
}

TEST(WatchdogOfAProcess, PrintsByDefault) {
    testing::internal::CaptureStderr();
    {
        io_context_options options;
        options.watchdog.enabled = watchdog_options::use::on;
        io_context ctx(std::move(options));
        ctx.co_spawn(inner_that_blocks(120ms), "printed");
        ctx.run();
    }
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(count_of(text, "a coroutine has blocked the thread for"), 1U) << text;
    EXPECT_EQ(count_of(text, "  task 'printed'"), 1U) << text;
    const auto end = text.find("a coroutine blocked the thread for ");
    ASSERT_NE(end, std::string::npos) << text;
    EXPECT_EQ(count_of(text.substr(end),
                       " ms in all, task 'printed', in (anonymous namespace)::inner_that_blocks"),
              1U)
        << text;
    EXPECT_EQ(count_of(text.substr(end), "\n"), 1U) << text;
}

/// The long turns that the watchdog has seen in a context whose options do not mention it.
std::uint64_t long_turns_by_default() {
    io_context ctx;
    ctx.co_spawn([]() -> task<> {
        co_await yield();
        blocks_for(250ms);
    }());
    ctx.run();
    return ctx.metrics().long_turns;
}

TEST(WatchdogOfAProcess, IsOnByDefaultInDebugBuildsAndAsTheEnvironmentSays) {
    const char* const before = std::getenv("COIL_WATCHDOG");
    const std::string word = before != nullptr ? before : "";
    ::unsetenv("COIL_WATCHDOG");
    EXPECT_EQ(long_turns_by_default(), is_default ? 1U : 0U);
    ::setenv("COIL_WATCHDOG", "on", 1);
    EXPECT_EQ(long_turns_by_default(), 1U);
    ::setenv("COIL_WATCHDOG", "off", 1);
    EXPECT_EQ(long_turns_by_default(), 0U);
    ::setenv("COIL_WATCHDOG", word.c_str(), 1);
    if (before == nullptr) {
        ::unsetenv("COIL_WATCHDOG");
    }
}

TEST(WatchdogOfAProcess, IsNoThreadThatCouldWakeATask) {
    SKIP_WITH_THREAD_SANITIZER();
    const std::string complaint = coil_test::in_child([]() -> std::string {
        std::string text;
        collected unused;
        io_context_options options = watched(unused);
        options.on_deadlock = [&](const std::string& dump) {
            text = dump;
            this_context().stop();
        };
        io_context ctx(std::move(options));
        coil::event never;
        ctx.co_spawn([](coil::event& e) -> task<> { co_await e.wait(); }(never));
        ctx.run();
        return text.empty() ? "no deadlock was found" : "";
    });
    EXPECT_EQ(complaint, "");
}

/// fork() leaves the thread in the parent; the child starts its own.
TEST(WatchdogOfAProcess, WorksInAChild) {
    SKIP_WITH_THREAD_SANITIZER();
    collected reports;
    io_context parent(watched(reports));
    parent.co_spawn(inner_that_blocks(60ms));
    parent.run();
    ASSERT_EQ(reports.of(kind::long_turn).size(), 1U);
    const std::string complaint = coil_test::in_child([]() -> std::string {
        collected inside;
        io_context ctx(watched(inside));
        ctx.co_spawn(inner_that_blocks(120ms));
        ctx.run();
        return inside.of(kind::long_turn).size() == 1 ? "" : "no report in the child";
    });
    EXPECT_EQ(complaint, "");
}

/// The first context of a process prepares the watchdog, here on its own thread, while another
/// thread forks, a little later each time: whatever has been prepared by then, the child must not
/// wait for the rest.
TEST(WatchdogOfAProcess, WorksInAChildForkedWhileAContextStarts) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    for (int round = 0; round != 50; ++round) {
        const std::string complaint = coil_test::in_child([round]() -> std::string {
            collected reports;
            io_context first(watched(reports));
            first.start();
            const auto fork_at = std::chrono::steady_clock::now() + round * 10us;
            while (std::chrono::steady_clock::now() < fork_at) {
            }
            const std::string inner = coil_test::in_child([]() -> std::string {
                ::alarm(20); // ends a child that waits for ever
                collected inside;
                io_context ctx(watched(inside));
                bool has_run = false;
                ctx.co_spawn([](bool& done) -> task<> {
                    done = true;
                    co_return;
                }(has_run));
                ctx.run();
                return has_run ? "" : "the task has not run";
            });
            first.stop();
            first.join();
            return inner;
        });
        ASSERT_EQ(complaint, "") << "round " << round;
    }
}

/// Threads whose first contexts start together choose one signal, whose handler stays installed.
TEST(WatchdogOfAProcess, ContextsThatStartTogetherShareTheirSignal) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    for (int round = 0; round != 20; ++round) {
        const std::string complaint = coil_test::in_child([]() -> std::string {
            std::barrier together(4);
            std::atomic<int> reported = 0;
            std::vector<std::thread> threads;
            for (int i = 0; i != 4; ++i) {
                threads.emplace_back([&] {
                    collected reports;
                    io_context ctx(watched(reports));
                    ctx.co_spawn(inner_that_blocks(60ms));
                    together.arrive_and_wait();
                    ctx.run();
                    reported += reports.of(kind::long_turn).empty() ? 0 : 1;
                });
            }
            for (std::thread& one : threads) {
                one.join();
            }
            return reported > 0 ? "" : "no report";
        });
        ASSERT_EQ(complaint, "") << "round " << round;
    }
}

TEST(WatchdogOfAProcess, EndsAtExitWhileAContextRuns) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "LeakSanitizer reports at the exit what threads that still run refer to, "
                        "and ThreadSanitizer makes no threads in a child";
    }
    const std::string complaint = coil_test::in_child([]() -> std::string {
        collected reports;
        io_context ctx(watched(reports));
        ctx.start();
        ctx.co_spawn(inner_that_blocks(60ms));
        std::this_thread::sleep_for(100ms);
        const pid_t child = ::fork();
        if (child == 0) {
            std::exit(0); // not _exit(): runs the registered handlers
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return status == 0 ? "" : "a child did not exit";
    });
    EXPECT_EQ(complaint, "");
}

TEST(WatchdogOfAProcess, WatchesNoSimulatedWorld) {
    collected reports;
    sim::world world(1);
    world.host("a").make_context(watched(reports)).co_spawn([]() -> task<> {
        co_await sleep_for(1s);
        blocks_for(100ms);
    }());
    world.run();
    EXPECT_EQ(reports.size(), 0U);
}

} // namespace
