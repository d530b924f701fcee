// Tasks that wait for ever while the process has other threads, which only wait, too.

#include "misuse/deadlocks.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include <signal.h>
#include <unistd.h>

using namespace coil;
using namespace coil_test;
using namespace std::chrono_literals;

namespace {

class DeadlockBesideThreads : public deadlock_test {};

/// The handler of a context stops it, so that a thread which waits for it continues.
std::string reported_after_start(const std::function<task<>()>& begin,
                                 const std::function<void(io_context&, join_handle<>)>& wait) {
    std::string text;
    io_context* running = nullptr;
    io_context ctx(stopped_by_report(text, running));
    running = &ctx;
    ctx.start();
    wait(ctx, ctx.spawn(begin()));
    ctx.join();
    return text;
}

// mistake 15: a task waits for ever while the thread that started its context joins it
// shows: `these tasks wait for ever`, after 50 ms
TEST_F(DeadlockBesideThreads, WhileAThreadWaitsForTheTask) {
    mutex m;
    const std::string text = reported_after_start(
        [&] { return locks_twice(m); },
        [](io_context&, join_handle<> h) { EXPECT_THROW(h.get(), std::system_error); });
    EXPECT_NE(text.find(", locked by the task that waits\n"), std::string::npos) << text;
}

TEST_F(DeadlockBesideThreads, WhileAThreadWaitsForTheContext) {
    channel<int> c(1);
    const std::string text = reported_after_start(
        [&] { return receives(c); }, [](io_context& ctx, const join_handle<>&) { ctx.join(); });
    EXPECT_NE(text.find("channel::recv"), std::string::npos) << text;
}

// mistake 15: a task waits for ever after a call of blocking() has ended
// shows: `these tasks wait for ever`: idle threads of a pool wake no task
TEST_F(DeadlockBesideThreads, AfterABlockingCall) {
    mutex m;
    const std::string text = reported([&](io_context& ctx) {
        ctx.co_spawn([](mutex& it) -> task<> {
            co_await blocking([] {});
            co_await locks_twice(it);
        }(m));
    });
    EXPECT_NE(text.find("wait for ever"), std::string::npos) << text;
    EXPECT_NE(text.find("mutex at"), std::string::npos) << text;
}

// mistake 15: a task waits for ever beside an idle thread_pool or context
// shows: `these tasks wait for ever`
TEST_F(DeadlockBesideThreads, BesideAnIdleThreadPool) {
    thread_pool pool(2);
    channel<int> c(1);
    const std::string text = reported([&](io_context& ctx) {
        ctx.co_spawn([](thread_pool& it, channel<int>& from) -> task<> {
            co_await on(it, []() -> task<> { co_return; }());
            co_await from.recv();
        }(pool, c));
    });
    EXPECT_NE(text.find("channel::recv"), std::string::npos) << text;
}

TEST_F(DeadlockBesideThreads, BesideAnIdleContext) {
    io_context idle;
    idle.start();
    channel<int> c(1);
    const std::string text = reported([&](io_context& ctx) { ctx.co_spawn(receives(c)); });
    EXPECT_NE(text.find("channel::recv"), std::string::npos) << text;
}

TEST_F(DeadlockBesideThreads, OfTwoContextsWhoseTasksWaitForEachOther) {
    channel<int> there(0);
    channel<int> back(0);
    io_context b;
    std::string text;
    io_context_options options;
    options.on_deadlock = [&](const std::string& report) {
        text += report;
        b.stop();
    };
    testing::internal::CaptureStderr(); // b may report first
    io_context a(options);
    a.start();
    b.start();
    a.co_spawn(receives(there), "one");
    join_handle<> other = b.spawn(receives(back));
    EXPECT_THROW(other.get(), std::system_error); // this thread waits
    a.stop();
    a.join();
    static_cast<void>(testing::internal::GetCapturedStderr());
    EXPECT_NE(text.find("'one'"), std::string::npos) << text;
}

// mistake 15: `get()` waits for a task of a context that no thread runs
// shows: `join_handle::get() waits for ever`, with the task, after 100 ms
TEST_F(DeadlockBesideThreads, GetOfATaskWhoseContextDoesNotRun) {
    const auto gets = [] {
        ::alarm(1); // ends the process
        io_context ctx;
        ctx.spawn([]() -> task<> { co_return; }(), "lonely").get();
    };
    EXPECT_EXIT(gets(), testing::KilledBySignal(SIGALRM),
                "coil: join_handle::get\\(\\) waits for ever for the task 'lonely' spawned "
                "at .*deadlock_threads_test.cpp:.*no thread of the process runs its "
                "context");
}

TEST_F(DeadlockBesideThreads, GetOfATaskWhoseContextHasStopped) {
    const auto gets = [] {
        ::alarm(1);
        io_context idle;
        idle.start();
        io_context ctx;
        ctx.start();
        ctx.stop();
        ctx.join();
        ctx.spawn([]() -> task<> { co_return; }(), "lonely").get();
    };
    EXPECT_EXIT(gets(), testing::KilledBySignal(SIGALRM), "waits for ever for the task 'lonely'");
}

TEST_F(DeadlockBesideThreads, NoneIfTheContextIsRunLater) {
    io_context ctx;
    auto handle = ctx.spawn([]() -> task<int> { co_return 1; }());
    testing::internal::CaptureStderr();
    std::thread later([&ctx] {
        std::this_thread::sleep_for(150ms); // longer than get() looks
        ctx.run();
    });
    EXPECT_EQ(handle.get(), 1);
    later.join();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(DeadlockBesideThreads, NotWhileAPoolRuns) {
    channel<int> c(1);
    std::size_t number = 0;
    io_context_options options;
    options.on_deadlock = [&](const std::string&) { ++number; };
    io_context ctx(options);
    ctx.co_spawn(receives(c));
    default_blocking_pool().execute([&] {
        std::this_thread::sleep_for(150ms); // longer than the interval between two checks
        static_cast<void>(c.try_send(1));
    });
    ctx.run();
    thread_pool pool(2);
    ctx.co_spawn(receives(c));
    pool.execute([&] {
        std::this_thread::sleep_for(150ms);
        static_cast<void>(c.try_send(1));
    });
    ctx.run();
    EXPECT_EQ(number, 0U);
}

TEST_F(DeadlockBesideThreads, NotIfTheThreadWaitsForAnotherContext) {
    channel<int> c(1);
    std::atomic<int> number = 0;
    io_context_options options;
    options.on_deadlock = [&](const std::string&) { ++number; };
    io_context ctx(options);
    io_context busy(options);
    ctx.start();
    busy.start();
    ctx.co_spawn(receives(c));
    busy.spawn([]() -> task<> { co_await sleep_for(150ms); }()).get();
    static_cast<void>(c.try_send(1));
    ctx.join();
    busy.join();
    EXPECT_EQ(number, 0);
}

TEST_F(DeadlockBesideThreads, NotIfAThreadEndsItsJoin) {
    channel<int> there(1);
    channel<int> back(1);
    std::atomic<int> number = 0;
    io_context_options options;
    options.on_deadlock = [&](const std::string&) { ++number; };
    io_context ctx(options);
    ctx.start();
    ctx.co_spawn([](channel<int>& from, channel<int>& to) -> task<> {
        while (const auto i = co_await from.recv()) {
            co_await to.send(*i);
        }
    }(there, back));
    for (int i = 0; i < 300; ++i) {
        EXPECT_TRUE(there.try_send(i));
        EXPECT_EQ(ctx.spawn([](channel<int>& from) -> task<int> {
                         co_return (co_await from.recv()).value();
                     }(back))
                      .get(),
                  i);
    }
    there.close();
    ctx.join();
    EXPECT_EQ(number, 0);
}

} // namespace
