// coil::yield() in coroutines of a run_loop.

#include "support/run.hpp"

#include <coroutine>
#include <optional>
#include <string>
#include <thread>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

task<> counts(std::string& out, char name, int turns) {
    for (int i = 0; i < turns; ++i) {
        out += name;
        co_await yield();
    }
}
task<> counts_below(std::string& out, char name, int turns) {
    co_await counts(out, name, turns);
    out += '.';
}

TEST(RunLoopYield, TasksTakeTurns) {
    std::string out;
    run_loop loop;
    loop.spawn(counts(out, 'a', 3));
    loop.spawn(counts_below(out, 'b', 2));
    loop.run();
    EXPECT_EQ(out, "ababa.");
}

/// Resumed in each round, whatever it awaits.
struct pushed {
    struct promise_type {
        pushed get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
        [[nodiscard]] inplace_stop_token stop_token() const noexcept { return {}; }
    };
    std::coroutine_handle<promise_type> handle;
};
pushed counts_pushed(std::string& out, char name, int turns) {
    for (int i = 0; i < turns; ++i) {
        out += name;
        co_await yield();
    }
}

TEST(RunLoopYield, APushedCoroutineHasOneTurnInEachRound) {
    std::string out;
    run_loop loop;
    loop.push(counts_pushed(out, 'p', 3).handle);
    loop.spawn(counts(out, 't', 3));
    loop.run();
    EXPECT_EQ(out, "ptptpt");
}

TEST(RunLoopYield, InsideOfAContextTheLoopResumesItsOwnTasks) {
    std::string out;
    run([](std::string& text) -> task<> {
        co_spawn(counts(text, 'c', 2));
        run_loop loop;
        loop.spawn(counts(text, 'a', 2));
        loop.spawn(counts(text, 'b', 2));
        loop.run(); // the context runs nothing meanwhile
        text += '|';
        co_await yield();
        co_await yield();
    }(out));
    EXPECT_EQ(out, "abab|cc");
}

TEST(RunLoopYield, AContextInsideOfTheLoopResumesItsOwnTasks) {
    std::string out;
    run_loop loop;
    loop.spawn([](std::string& text) -> task<> {
        run([](std::string& inner) -> task<> {
            co_spawn(counts(inner, 'c', 2));
            co_await counts(inner, 'd', 2);
        }(text));
        text += '|';
        co_await yield();
        text += 'e';
    }(out));
    loop.spawn(counts(out, 'l', 1));
    loop.run();
    EXPECT_EQ(out, "dcdc|le");
}

TEST(RunLoopYield, ATaskThatIsDestroyedWhileItIsQueued) {
    int destroyed = 0;
    {
        run_loop loop;
        loop.spawn([](int& count, run_loop& all) -> task<> {
            const coil_test::on_destruction guard(count);
            all.stop();
            co_await yield();
            co_await yield();
        }(destroyed, loop));
        loop.run();
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, 1);
}

TEST(RunLoopYield, G5_AContextAdoptsATaskWhoseTurnIsDropped) {
    std::string out;
    run([](std::string& text) -> task<> {
        std::optional<run_loop> loop(std::in_place);
        auto moved = spawn([](run_loop& there, std::string& all) -> task<> {
            co_await resume_on(there);
            all += '1';
            co_await yield();
            all += '2';
        }(*loop, text));
        while (text.empty()) { // until it has started, moved to the loop and yielded there
            co_await yield();
            loop->run_once();
        }
        loop.reset();
        EXPECT_EQ(text, "1");
        co_await std::move(moved);
    }(out));
    EXPECT_EQ(out, "12");
}

TEST(RunLoopYield, TheTurnsMayBeOnDifferentThreads) {
    std::string out;
    run_loop loop;
    loop.spawn(counts(out, 'a', 3));
    std::thread([&] { loop.run_once(); }).join();
    std::thread([&] { loop.run_once(); }).join();
    loop.finish();
    loop.run();
    EXPECT_EQ(out, "aaa");
}

TEST(RunLoopYield, WithoutContextAndLoopTheProgramEnds) {
    EXPECT_DEATH(
        {
            const pushed alone = counts_pushed(*new std::string, 'x', 1);
            alone.handle.resume();
        },
        "coil: an await, or co_spawn\\(\\), spawn\\(\\) or this_context\\(\\), outside of an "
        "io_context");
}

} // namespace
