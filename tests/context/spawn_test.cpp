// Starting tasks: from any thread, at any time, and in which order they run.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Spawn : public ::testing::Test {};

task<> append(std::string& to, char c) {
    to += c;
    co_return;
}

task<> count(std::atomic<int>& n) {
    co_await yield();
    ++n;
}

TEST_F(Spawn, RunWithNothingToDoReturns) {
    io_context ctx;
    ctx.run();
    ctx.run();
}

TEST_F(Spawn, G9_BeforeRun) {
    io_context ctx;
    std::atomic<int> n{0};
    ctx.co_spawn(count(n));
    EXPECT_EQ(n, 0);
    ctx.run();
    EXPECT_EQ(n, 1);
}

TEST_F(Spawn, G9_BeforeRunFromAnotherThread) {
    io_context ctx;
    std::atomic<int> n{0};
    std::thread([&] { ctx.co_spawn(count(n)); }).join();
    ctx.run();
    EXPECT_EQ(n, 1);
}

TEST_F(Spawn, G9_DuringRunFromACoroutine) {
    io_context ctx;
    std::atomic<int> n{0};
    auto parent = [](std::atomic<int>& c) -> task<> {
        coil::co_spawn(count(c));
        this_context().co_spawn(count(c));
        co_return;
    };
    ctx.co_spawn(parent(n));
    ctx.run();
    EXPECT_EQ(n, 2);
}

TEST_F(Spawn, G9_DuringRunFromAnotherThreadWhileItSleeps) {
    io_context ctx;
    const coil_test::pipe_pair p;
    auto wait = [](int fd) -> task<int> {
        char c;
        co_return co_await io::read(fd, {&c, 1});
    };
    auto release = [](const coil_test::pipe_pair& pipe) -> task<> {
        pipe.put("x");
        co_return;
    };
    auto handle = ctx.spawn(wait(p.in));
    const pid_t runner = ::gettid();
    std::thread other([&] {
        coil_test::wait_until_asleep(runner);
        ctx.co_spawn(release(p));
    });
    ctx.run();
    other.join();
    EXPECT_EQ(handle.get(), 1);
}

TEST_F(Spawn, G9_AfterRunForTheNextRun) {
    io_context ctx;
    std::atomic<int> n{0};
    ctx.co_spawn(count(n));
    ctx.run();
    ctx.co_spawn(count(n));
    EXPECT_EQ(n, 1);
    ctx.run();
    EXPECT_EQ(n, 2);
}

TEST_F(Spawn, G9_FromManyThreadsWhileItRuns) {
    io_context ctx;
    std::atomic<int> n{0};
    const int each = coil_test::rounds(3000, 100'000);
    auto keep_alive = [](std::atomic<int>& c, int all) -> task<> {
        while (c < all) {
            co_await sleep_for(100us);
        }
    };
    ctx.co_spawn(keep_alive(n, 3 * each));
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < each; ++i) {
                ctx.co_spawn(count(n));
                if (i % 100 == 0) {
                    std::this_thread::sleep_for(50us); // lets it fall asleep now and then
                }
            }
        });
    }
    ctx.run();
    for (auto& t : threads) {
        t.join();
    }
    EXPECT_EQ(n, 3 * each);
}

TEST_F(Spawn, G5_NeverRun_DestroysTheTasksUnrun) {
    int destroyed = 0;
    bool ran = false;
    auto hold = [](coil_test::on_destruction, bool& flag) -> task<> {
        flag = true;
        co_return;
    };
    {
        io_context ctx;
        ctx.co_spawn(hold(coil_test::on_destruction(destroyed), ran));
        std::thread([&] { ctx.co_spawn(hold(coil_test::on_destruction(destroyed), ran)); }).join();
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, 2);
    EXPECT_FALSE(ran);
}

TEST_F(Spawn, G7_TasksStartInTheOrderOfSpawning) {
    io_context ctx;
    std::string order;
    for (const char c : std::string("abcdef")) {
        ctx.co_spawn(append(order, c));
    }
    ctx.run();
    EXPECT_EQ(order, "abcdef");
}

TEST_F(Spawn, G7_ASpawnedTaskStartsAfterCoroutinesThatAreReady) {
    std::string order;
    auto second = [](std::string& to) -> task<> {
        to += '2';
        co_return;
    };
    auto first = [](std::string& to) -> task<> {
        to += '1';
        coil::co_spawn(append(to, '3'));
        to += 'a';
        co_return;
    };
    io_context ctx;
    ctx.co_spawn(first(order));
    ctx.co_spawn(second(order));
    ctx.run();
    EXPECT_EQ(order, "1a23");
}

TEST_F(Spawn, G7_YieldIsRoundRobin) {
    std::string order;
    auto thrice = [](std::string& to, char c) -> task<> {
        for (int i = 0; i < 3; ++i) {
            to += c;
            co_await yield();
        }
    };
    io_context ctx;
    ctx.co_spawn(thrice(order, 'a'));
    ctx.co_spawn(thrice(order, 'b'));
    ctx.co_spawn(thrice(order, 'c'));
    ctx.run();
    EXPECT_EQ(order, "abcabcabc");
}

TEST_F(Spawn, ThisContextIsTheOneThatRuns) {
    io_context a;
    io_context b;
    auto where = []() -> task<io_context*> {
        co_await yield();
        co_return &this_context();
    };
    auto in_a = a.spawn(where());
    auto in_b = b.spawn(where());
    a.run();
    b.run();
    EXPECT_EQ(in_a.get(), &a);
    EXPECT_EQ(in_b.get(), &b);
}

TEST_F(Spawn, RunFromInsideThrows) {
    io_context ctx;
    auto nested = [](io_context& c) -> task<> {
        EXPECT_THROW(c.run(), std::logic_error);
        co_return;
    };
    coil_test::run_on(ctx, nested(ctx));
}

TEST_F(Spawn, G1_EveryAwaitResumesOnItsOwnThread) {
    io_context a;
    io_context b;
    auto check = []() -> task<> {
        const std::thread::id mine = std::this_thread::get_id();
        io_context* const context = &this_context();
        for (int i = 0; i < 200; ++i) {
            co_await yield();
            co_await io::nop();
            co_await sleep_for(10us);
            EXPECT_EQ(std::this_thread::get_id(), mine);
            EXPECT_EQ(&this_context(), context);
        }
    };
    for (int i = 0; i < 5; ++i) {
        a.co_spawn(check());
        b.co_spawn(check());
    }
    std::thread other([&] { a.run(); });
    b.run();
    other.join();
}

TEST_F(Spawn, ATaskMayMoveWhileItIsAwaited) {
    auto later = [](int n) -> task<int> {
        co_await yield();
        co_await yield();
        co_return n;
    };
    auto awaits = [](std::vector<task<int>>& tasks, int& sum) -> task<> {
        sum += co_await std::move(tasks[0]);
    };
    auto moves = [](auto make, std::vector<task<int>>& tasks) -> task<> {
        for (int i = 0; i < 10; ++i) {
            tasks.push_back(make(i)); // reallocates
        }
        co_return;
    };
    std::vector<task<int>> tasks;
    tasks.push_back(later(5));
    int sum = 0;
    io_context ctx;
    ctx.co_spawn(awaits(tasks, sum));
    ctx.co_spawn(moves(later, tasks));
    ctx.run();
    EXPECT_EQ(sum, 5);
}

#if !defined(NDEBUG)
// mistake 6: `co_await std::move(t)` of a task that was awaited
// shows: `this task was awaited before: a task is awaited once.`
// mistake 7: `co_await std::move(t)` of a task that was spawned or moved from
// shows: `this task has already been spawned or moved from.`
TEST_F(Spawn, MisuseOfATaskTerminatesWithAMessage) {
    auto answer = []() -> task<int> { co_return 1; };
    auto nothing = []() -> task<> { co_return; };
    auto twice = [](auto make) -> task<> {
        task<int> t = make();
        co_await std::move(t);
        co_await std::move(t); // NOLINT(bugprone-use-after-move)
    };
    auto empty = [](auto make) -> task<> {
        task<int> t = make();
        [[maybe_unused]] task<int> other = std::move(t);
        co_await std::move(t); // NOLINT(bugprone-use-after-move)
    };
    EXPECT_DEATH(coil::run(twice(answer)), "this task was awaited before");
    EXPECT_DEATH(coil::run(empty(answer)), "this task has already been spawned or moved from");
    EXPECT_DEATH(
        {
            io_context ctx;
            task<> t = nothing();
            ctx.co_spawn(std::move(t));
            ctx.co_spawn(std::move(t)); // NOLINT(bugprone-use-after-move)
        },
        "this task has already been spawned or moved from");
}
#endif

} // namespace
