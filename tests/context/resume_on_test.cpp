// resume_on(): tasks that move between contexts.

#include "support/run.hpp"

#include <array>
#include <atomic>
#include <stop_token>
#include <thread>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class ResumeOn : public ::testing::Test {};

TEST_F(ResumeOn, MovesTheTaskAndItsAwaiters) {
    runtime rt(2);
    auto child = [](io_context& to) -> task<std::thread::id> {
        co_await resume_on(to);
        co_return std::this_thread::get_id();
    };
    auto main = [&](runtime& all) -> task<> {
        io_context& a = all.context(0);
        io_context& b = all.context(1);
        const auto home = std::this_thread::get_id();
        EXPECT_EQ(&this_context(), &a);
        const auto there = co_await child(b);
        EXPECT_NE(there, home);
        EXPECT_EQ(std::this_thread::get_id(), there); // the parent runs where its child ended
        EXPECT_EQ(&this_context(), &b);
        co_await sleep_for(1ms);
        EXPECT_EQ(co_await io::nop(), 0);
        EXPECT_EQ(std::this_thread::get_id(), there);
        co_await resume_on(b); // has no effect: the task is there
        co_await resume_on(a);
        EXPECT_EQ(std::this_thread::get_id(), home);
    };
    rt.context(0).co_spawn(main(rt));
    rt.run();
}

TEST_F(ResumeOn, AStartedContextRunsTasksThatMoveToIt) {
    io_context other;
    other.start();
    auto main = [](io_context& there) -> task<int> {
        io_context& home = this_context();
        int hops = 0;
        for (int i = 0; i < coil_test::rounds(500, 50'000); ++i) {
            co_await resume_on(there);
            hops += &this_context() == &there ? 1 : 0;
            co_await resume_on(home);
            hops += &this_context() == &home ? 1 : 0;
        }
        co_return hops;
    };
    auto await_at_home = [](join_handle<int> work) -> task<int> { co_return co_await work; };
    io_context home;
    auto work = home.spawn(main(other));
    // The task leaves `home` now and then; `home` keeps running because of another task, which
    // awaits the first one there.
    auto result = home.spawn(await_at_home(std::move(work)));
    home.run();
    EXPECT_EQ(result.get(), 2 * coil_test::rounds(500, 50'000));
    other.join();
}

TEST_F(ResumeOn, G3_TheTaskKeepsItsStopToken) {
    runtime rt(2);
    auto work = [](runtime& all) -> task<int> {
        co_await resume_on(all.context(1));
        co_return co_await sleep_for(1h);
    };
    auto main = [&](runtime& all) -> task<> {
        auto handle = all.context(0).spawn(work(all));
        co_await sleep_for(1ms);
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        // The same with a separate stop token.
        std::stop_source stop;
        auto other = all.context(0).spawn(work(all), stop.get_token());
        co_await sleep_for(1ms);
        stop.request_stop();
        EXPECT_EQ(co_await other, -ECANCELED);
    };
    rt.context(0).co_spawn(main(rt));
    rt.run();
}

TEST_F(ResumeOn, G5_AShutdownOfTheTargetDestroysIt) {
    std::array<int, 3> destroyed{};
    io_context home;
    io_context other;
    auto inner = [](io_context& to, coil_test::on_destruction local) -> task<> {
        const coil_test::on_destruction guard = std::move(local);
        co_await resume_on(to);
        co_await sleep_for(1h);
    };
    auto outer = [&](io_context& to, coil_test::on_destruction local, int& below) -> task<> {
        const coil_test::on_destruction guard = std::move(local);
        co_await inner(to, coil_test::on_destruction(below));
    };
    home.co_spawn(outer(other, coil_test::on_destruction(destroyed[0]), destroyed[1]));
    home.run(); // returns: the task has left
    EXPECT_EQ(destroyed, (std::array{0, 0, 0}));
    other.co_spawn([]() -> task<> {
        co_await sleep_for(2ms);
        this_context().stop();
    }());
    other.run();
    EXPECT_EQ(destroyed, (std::array{1, 1, 0}));
}

TEST_F(ResumeOn, G5_TheTargetIsDestroyedWhileATaskMovesToIt) {
    int destroyed = 0;
    io_context home;
    {
        io_context other;
        auto work = [](io_context& to, coil_test::on_destruction local) -> task<> {
            const coil_test::on_destruction guard = std::move(local);
            co_await resume_on(to);
            ADD_FAILURE() << "the coroutine was resumed";
        };
        home.co_spawn(work(other, coil_test::on_destruction(destroyed)));
        home.run();
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, 1);
}

TEST_F(ResumeOn, G5_BehindAnotherTaskThatStopsTheTarget) {
    std::array<int, 2> destroyed{};
    io_context home;
    io_context other;
    auto work = [](io_context& to, coil_test::on_destruction local) -> task<> {
        const coil_test::on_destruction guard = std::move(local);
        co_await resume_on(to);
        this_context().stop();
        co_await sleep_for(1h);
    };
    // Both become ready on `other` in one turn. The first one stops it while the second is in
    // the ready queue.
    home.co_spawn(work(other, coil_test::on_destruction(destroyed[0])));
    home.co_spawn([](io_context& to, coil_test::on_destruction local) -> task<> {
        const coil_test::on_destruction guard = std::move(local);
        co_await resume_on(to);
        co_await yield();
        co_await yield();
        co_await sleep_for(1h);
    }(other, coil_test::on_destruction(destroyed[1])));
    home.run();
    other.run();
    EXPECT_EQ(destroyed, (std::array{1, 1}));
}

TEST_F(ResumeOn, G9_ManyTasksMoveConcurrently) {
    runtime rt(3);
    std::atomic<long> sum{0};
    auto wander = [](runtime& all, std::atomic<long>& total, unsigned seed) -> task<> {
        for (int i = 0; i < coil_test::rounds(100, 5'000); ++i) {
            seed = seed * 1664525 + 1013904223;
            io_context& next = all.context((seed >> 16) % all.size());
            co_await resume_on(next);
            EXPECT_EQ(&this_context(), &next);
            if (seed % 7 == 0) {
                co_await io::nop();
            }
            ++total;
        }
    };
    for (unsigned i = 0; i < 20; ++i) {
        rt.co_spawn(wander(rt, sum, i));
    }
    rt.run();
    EXPECT_EQ(sum, 20L * coil_test::rounds(100, 5'000));
}

} // namespace
