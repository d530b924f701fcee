// dump_tasks() from other threads, at any time.

#include "support.hpp"

#include <atomic>
#include <thread>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::count_of;

task<> sleeps(std::chrono::microseconds d) { co_await sleep_for(d); }

TEST(DumpFromThreads, WhileTasksComeAndGo) {
    runtime rt(2);
    std::atomic<bool> over = false;
    std::thread storm([&] {
        for (int i = 0; i < coil_test::rounds(2000, 50'000); ++i) {
            rt.co_spawn(sleeps(std::chrono::microseconds(i % 500)), "of the storm");
            rt.co_spawn([]() -> task<> {
                co_await when_all(sleeps(10us), sleeps(20us));
                scope all;
                all.spawn(sleeps(30us));
                co_await all.join();
            }());
        }
        over = true;
    });
    std::vector<std::thread> askers;
    for (int i = 0; i < 2; ++i) {
        askers.emplace_back([&] {
            while (!over) {
                EXPECT_EQ(count_of(rt.dump_tasks(), "context coil-"), 2U);
            }
            rt.stop();
        });
    }
    rt.co_spawn(sleeps(1h));
    rt.run();
    for (std::thread& each : askers) {
        each.join();
    }
    storm.join();
    EXPECT_EQ(count_of(rt.dump_tasks_json(), "\"answered\":true"), 2U);
}

/// Each blocks its own thread until the other has answered.
TEST(DumpFromThreads, TwoContextsAskEachOther) {
    runtime rt(2);
    std::atomic<int> there = 0;
    const auto asks = [](runtime& all, std::atomic<int>& n) -> task<> {
        ++n;
        while (n < 2) {
            std::this_thread::yield();
        }
        for (int i = 0; i < 20; ++i) {
            const std::string text = all.dump_tasks();
            EXPECT_EQ(count_of(text, "no answer"), 0U) << text;
        }
        co_return;
    };
    rt.context(0).co_spawn(asks(rt, there));
    rt.context(1).co_spawn(asks(rt, there));
    rt.run();
}

TEST(DumpFromThreads, DuringAShutdownAndBetweenRuns) {
    std::atomic<bool> over = false;
    io_context ctx;
    std::thread asker([&] {
        while (!over) {
            static_cast<void>(ctx.dump_tasks());
        }
    });
    for (int round = 0; round < coil_test::rounds(50, 1000); ++round) {
        for (int i = 0; i < 20; ++i) {
            ctx.co_spawn([]() -> task<> {
                supervisor all;
                static_cast<void>(all.spawn(sleeps(1h), "session"));
                co_await when_any(sleeps(1h), sleeps(1h));
            }());
        }
        ctx.co_spawn([](io_context& here) -> task<> {
            co_await sleep_for(100us);
            here.stop();
        }(ctx));
        ctx.run();
    }
    over = true;
    asker.join();
}

TEST(DumpFromThreads, AContextThatIsBlockedIsReported) {
    io_context ctx;
    std::atomic<bool> done = false;
    ctx.start();
    ctx.post([&] { done.wait(false); });
    std::this_thread::sleep_for(10ms);
    const std::string text = ctx.dump_tasks();
    done = true;
    done.notify_all();
    EXPECT_EQ(count_of(text, "no answer within 2 s"), 1U) << text;
    ctx.stop();
    ctx.join();
}

} // namespace
