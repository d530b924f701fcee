// Tasks that wait for ever: the context reports them once.

#include "misuse/deadlocks.hpp"
#include "support/printed.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>

#include <signal.h>
#include <unistd.h>

using namespace coil;
using namespace coil_test;
using namespace std::chrono_literals;

namespace {

task<> locks_both(mutex& a, mutex& b) {
    co_await a.lock();
    co_await sleep_for(1ms);
    co_await b.lock();
}

task<> locks_second_after_both_locked(mutex& a, mutex& b, latch& first_locks) {
    co_await a.lock();
    co_await first_locks.arrive_and_wait();
    co_await b.lock();
}

class Deadlock : public deadlock_test {};

TEST_F(Deadlock, InARunThatATaskOfAnotherContextHasCalled) {
    mutex m;
    std::string text;
    const std::function<void()> run = [&] {
        text = reported([&](io_context& ctx) { ctx.co_spawn(locks_twice(m)); });
    };
    io_context outer;
    outer.co_spawn([](const std::function<void()>& f) -> task<> {
        f();
        co_return;
    }(run));
    outer.run();
    EXPECT_NE(text.find("wait for ever"), std::string::npos) << text;
}

// mistake 9: a task locks a coil::mutex that it holds
// shows: `these tasks wait for ever`, with the mutex, `locked by the task that waits`
TEST_F(Deadlock, AMutexLockedTwiceByOneTask) {
    mutex m;
    const std::string text =
        reported([&](io_context& ctx) { ctx.co_spawn(locks_twice(m), "twice"); });
    EXPECT_NE(text.find("wait for ever"), std::string::npos);
    EXPECT_NE(text.find("'twice'"), std::string::npos) << text;
    EXPECT_NE(text.find("mutex at"), std::string::npos) << text;
    EXPECT_NE(text.find(", locked by the task that waits\n"), std::string::npos) << text;
}

// mistake 9: a task locks a coil::shared_mutex that it has locked exclusively, in either mode
// shows: `these tasks wait for ever`, with the shared_mutex, `locked by the task that waits`
TEST_F(Deadlock, ASharedMutexLockedAgainByItsWriter) {
    shared_mutex m;
    const auto again = [&](task<> second) {
        const std::string text = reported([&](io_context& ctx) {
            ctx.co_spawn(
                [](shared_mutex& it, task<> next) -> task<> {
                    co_await it.lock();
                    const shared_mutex::guard held(it);
                    co_await std::move(next);
                }(m, std::move(second)),
                "twice");
        });
        EXPECT_TRUE(std::regex_search(
            text,
            std::regex("'twice'.*shared_mutex at 0x[0-9a-f]+, locked by the task that waits\n")))
            << text;
    };
    again([](shared_mutex& it) -> task<> { co_await it.lock(); }(m));
    again([](shared_mutex& it) -> task<> { co_await it.lock_shared(); }(m));
    again([](shared_mutex& it) -> task<> { auto guard = co_await it.lock_guard(); }(m));
}

// mistake 9: a task that holds a shared lock of a coil::shared_mutex locks it exclusively
// shows: `these tasks wait for ever`, with the shared_mutex, `locked shared`
TEST_F(Deadlock, ASharedMutexLockedByItsReader) {
    shared_mutex m;
    const std::string text = reported([&](io_context& ctx) {
        ctx.co_spawn([](shared_mutex& it) -> task<> {
            const auto held = co_await it.shared_lock_guard();
            co_await it.lock();
        }(m));
    });
    EXPECT_TRUE(std::regex_search(text, std::regex("shared_mutex at 0x[0-9a-f]+, locked shared\n")))
        << text;
}

TEST_F(Deadlock, ASharedMutexAfterItsModeHasChanged) {
    shared_mutex m;
    const auto waits = [&] {
        return reported([&](io_context& ctx) {
            ctx.co_spawn([](shared_mutex& it) -> task<> { co_await it.lock(); }(m));
        });
    };
    ASSERT_TRUE(m.try_lock_shared());
    EXPECT_NE(waits().find(", locked shared\n"), std::string::npos);
    m.unlock_shared();
    ASSERT_TRUE(m.try_lock()); // outside of any task
    EXPECT_EQ(waits().find("locked"), std::string::npos);
    m.unlock();
    EXPECT_TRUE(m.try_lock_shared());
    m.unlock_shared();
}

/// The task of run() has the place of the call.
TEST_F(Deadlock, OfTheTaskThatRunHasStarted) {
    channel<int> c(1);
    io_context_options options;
    std::string text;
    options.on_deadlock = [&](const std::string& report) {
        text = report;
        c.close();
    };
    run(receives(c), options);
    EXPECT_EQ(text.find("run.hpp"), std::string::npos) << text;
    if (coil_test::checks) {
        EXPECT_NE(text.find("spawned at"), std::string::npos) << text;
        EXPECT_NE(text.find("deadlock_test.cpp:"), std::string::npos) << text;
    }
    text.clear();
    channel<int> d(1);
    runtime_options several{.contexts = 2};
    several.context.on_deadlock = [&](const std::string& report) {
        text = report;
        d.close();
    };
    runtime(several).block_on(receives(d));
    EXPECT_EQ(text.find("runtime.hpp"), std::string::npos) << text;
}

// mistake 15: a task receives from a channel without a sender
// shows: `these tasks wait for ever`, with `channel::recv`
TEST_F(Deadlock, AChannelWithoutASender) {
    channel<int> c(1);
    const std::string text = reported([&](io_context& ctx) { ctx.co_spawn(receives(c)); });
    EXPECT_NE(text.find("channel::recv"), std::string::npos) << text;
}

// mistake 15: two tasks lock two mutexes in opposite orders
// shows: `these tasks wait for ever`, with the name of each and what it waits for
TEST_F(Deadlock, TwoMutexesInOppositeOrders) {
    mutex a;
    mutex b;
    const std::string text = reported([&](io_context& ctx) {
        ctx.co_spawn(locks_both(a, b), "first");
        ctx.co_spawn(locks_both(b, a), "second");
    });
    EXPECT_NE(text.find("'first'"), std::string::npos) << text;
    EXPECT_NE(text.find("'second'"), std::string::npos) << text;
    const std::regex by_second("'first'.*locked by task 0x[0-9a-f]+ 'second'\n");
    const std::regex by_first("'second'.*locked by task 0x[0-9a-f]+ 'first'\n");
    EXPECT_TRUE(std::regex_search(text, by_second)) << text;
    EXPECT_TRUE(std::regex_search(text, by_first)) << text;
}

TEST_F(Deadlock, AMutexWhoseHolderIsUnknown) {
    mutex m;
    ASSERT_TRUE(m.try_lock());
    const std::string text = reported(
        [&](io_context& ctx) { ctx.co_spawn([](mutex& it) -> task<> { co_await it.lock(); }(m)); });
    EXPECT_NE(text.find("mutex at"), std::string::npos) << text;
    EXPECT_EQ(text.find("locked by"), std::string::npos) << text;
}

TEST_F(Deadlock, AMutexThatAFinishedTaskHasLocked) {
    mutex m;
    const std::string text = reported([&](io_context& ctx) {
        ctx.co_spawn([](mutex& it) -> task<> { co_await it.lock(); }(m));
        ctx.co_spawn([](mutex& it) -> task<> {
            co_await sleep_for(1ms);
            co_await it.lock();
        }(m));
    });
    EXPECT_NE(text.find("mutex at"), std::string::npos) << text;
    EXPECT_EQ(text.find("locked by"), std::string::npos) << text;
}

TEST_F(Deadlock, TheHandlerMayMakeATaskReady) {
    channel<int> c(1);
    io_context_options options;
    std::size_t reports = 0;
    options.on_deadlock = [&](const std::string&) {
        ++reports;
        c.close();
    };
    io_context ctx(options);
    ctx.co_spawn(receives(c));
    ctx.run();
    EXPECT_EQ(reports, 1U);
}

TEST_F(Deadlock, AnExceptionOfTheHandlerLeavesRun) {
    mutex m;
    io_context_options options;
    options.on_deadlock = [](const std::string&) { throw std::runtime_error("deadlock"); };
    EXPECT_THROW(run(locks_twice(m), options), std::runtime_error);
}

TEST_F(Deadlock, PrintedByDefault) {
    io_context ctx;
    channel<int> c(1);
    std::string printed;
    testing::internal::CaptureStderr();
    // The report is printed before the loop sleeps; then the signal of alarm(2) stops the loop.
    struct ::sigaction interrupt{};
    static io_context* running = nullptr;
    running = &ctx;
    interrupt.sa_handler = [](int) { running->stop(); };
    struct ::sigaction before{};
    ::sigaction(SIGALRM, &interrupt, &before);
    ::alarm(1);
    ctx.co_spawn(receives(c));
    ctx.run();
    ::sigaction(SIGALRM, &before, nullptr);
    printed = testing::internal::GetCapturedStderr();
    EXPECT_NE(printed.find("coil: these tasks wait for ever"), std::string::npos) << printed;
    EXPECT_EQ(printed.find("wait for ever"), printed.rfind("wait for ever")); // once
}

TEST_F(Deadlock, NotIfAnotherThreadMayWakeIt) {
    channel<int> c(1);
    std::size_t reports = 0;
    io_context_options options;
    options.on_deadlock = [&](const std::string&) { ++reports; };
    io_context ctx(options);
    ctx.co_spawn(receives(c));
    std::thread sender([&] {
        std::this_thread::sleep_for(20ms);
        static_cast<void>(c.try_send(1));
    });
    ctx.run();
    sender.join();
    EXPECT_EQ(reports, 0U);
}

// mistake 15: tasks of several contexts of a runtime wait for each other
// shows: `these tasks wait for ever`, with the tasks of all contexts
TEST_F(Deadlock, TheContextsOfARuntime) {
    mutex a;
    mutex b;
    channel<int> c(1);
    std::string text;
    runtime* running = nullptr;
    runtime_options options;
    options.contexts = 3; // the third has no tasks
    options.context.on_deadlock = [&](const std::string& report) {
        text += report;
        running->stop();
    };
    runtime rt(options);
    running = &rt;
    latch first_locks(2);
    rt.context(0).co_spawn(locks_second_after_both_locked(a, b, first_locks), "first");
    rt.context(1).co_spawn(locks_second_after_both_locked(b, a, first_locks), "second");
    rt.context(1).co_spawn(receives(c), "third");
    rt.run();
    EXPECT_EQ(text.find("coil: these tasks wait for ever: no operation is in flight"), 0U) << text;
    EXPECT_EQ(text.find("wait for ever"), text.rfind("wait for ever")) << "once: " << text;
    EXPECT_TRUE(std::regex_search(text, std::regex("'first'.*mutex at"))) << text;
    EXPECT_TRUE(std::regex_search(text, std::regex("'second'.*mutex at"))) << text;
    EXPECT_TRUE(std::regex_search(text, std::regex("'third'[\\s\\S]*channel::recv"))) << text;
}

TEST_F(Deadlock, NotIfTheContextsOfARuntimeWakeEachOther) {
    std::atomic<int> reports = 0;
    runtime_options options;
    options.contexts = 3;
    options.context.on_deadlock = [&](const std::string&) { ++reports; };
    runtime rt(options);
    channel<int> there(0);
    channel<int> back(0);
    rt.context(0).co_spawn([](channel<int>& to, channel<int>& from) -> task<> {
        for (int i = 0; i < 2000; ++i) {
            co_await to.send(i);
            EXPECT_EQ(co_await from.recv(), i);
        }
        to.close();
    }(there, back));
    rt.context(1).co_spawn([](channel<int>& from, channel<int>& to) -> task<> {
        while (const auto i = co_await from.recv()) {
            co_await to.send(*i);
        }
    }(there, back));
    rt.run();
    EXPECT_EQ(reports, 0);
}

TEST_F(Deadlock, NotIfAnotherThreadMayWakeARuntime) {
    std::atomic<int> reports = 0;
    runtime_options options;
    options.contexts = 2;
    options.context.on_deadlock = [&](const std::string&) { ++reports; };
    runtime rt(options);
    channel<int> c(1);
    rt.co_spawn(receives(c));
    std::thread sender([&] {
        std::this_thread::sleep_for(20ms);
        static_cast<void>(c.try_send(1));
    });
    rt.run();
    sender.join();
    EXPECT_EQ(reports, 0);
}

TEST_F(Deadlock, NotDuringAnOperationOrASleep) {
    std::size_t reports = 0;
    io_context_options options;
    options.on_deadlock = [&](const std::string&) { ++reports; };
    io_context ctx(options);
    ctx.co_spawn([]() -> task<> {
        co_await sleep_for(5ms);
        int ends[2] = {};
        static_cast<void>((co_await io::pipe(ends)).value());
        char c = 0;
        EXPECT_EQ(co_await timeout(io::read(ends[0], {&c, 1}), 5ms), -ETIMEDOUT);
        co_await io::close(ends[0]);
        co_await io::close(ends[1]);
    }());
    ctx.run();
    EXPECT_EQ(reports, 0U);
}

} // namespace
