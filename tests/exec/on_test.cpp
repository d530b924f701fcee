// on(ex, task): runs a task on an executor and resumes the caller where it was.

#include "exec/support.hpp"

#include <array>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

using namespace exec_test;

namespace {

std::thread::id on_here() { return std::this_thread::get_id(); }

task<std::thread::id> on_where() { co_return on_here(); }
task<std::unique_ptr<int>> on_moves(std::unique_ptr<int> n) { co_return n; }
task<int&> on_refers(int& n) { co_return n; }
task<> on_throws() {
    throw 42;
    co_return;
}

TEST(On, ReturnsTheResultOfTheTask) {
    looper_executor looper;
    async_executor threads;
    auto main = [&]() -> task<> {
        const auto home = on_here();
        EXPECT_EQ(co_await on(looper, on_where()), looper.get_id());
        EXPECT_EQ(on_here(), home);
        EXPECT_NE(co_await on(threads, on_where()), home);
        EXPECT_EQ(*co_await on(looper, on_moves(std::make_unique<int>(3))), 3);
        int n = 0;
        EXPECT_EQ(&co_await on(looper, on_refers(n)), &n);
        try {
            co_await on(looper, on_throws());
            ADD_FAILURE();
        } catch (int e) {
            EXPECT_EQ(e, 42);
            EXPECT_EQ(on_here(), home);
        }
        auto later = on(any_executor(looper), on_where()); // can be moved before it is awaited
        auto moved = std::move(later);
        EXPECT_EQ(co_await std::move(moved), looper.get_id());
        EXPECT_EQ(co_await io::nop(), 0);
    };
    coil::run(main());
}

TEST(On, ReturnsTheResultToACoroutineOnAnExecutor) {
    looper_executor home;
    looper_executor there;
    auto main = [&]() -> task<bool> {
        co_await resume_on(home);
        const auto where = co_await on(there, on_where());
        co_return where == there.get_id() && on_here() == home.get_id();
    };
    EXPECT_TRUE(coil::run(main()));
}

TEST(On, ATaskOnAContextMayUseItsOperations) {
    runtime rt(2);
    auto work = []() -> task<io_context*> {
        EXPECT_EQ(co_await io::nop(), 0);
        EXPECT_EQ(co_await sleep_for(1ms), 0);
        co_return &this_context();
    };
    auto main = [&](runtime& all) -> task<> {
        io_context& home = this_context();
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(co_await on(all.context(i), work()), &all.context(i));
            EXPECT_EQ(&this_context(), &home);
        }
        EXPECT_NE(co_await on(all, work()), nullptr);
        EXPECT_EQ(&this_context(), &home);
    };
    rt.block_on(main(rt));
    rt.context(1).co_spawn(main(rt));
    rt.run();
}

TEST(On, InACombination) {
    looper_executor a;
    async_executor b;
    auto main = [&]() -> task<> {
        auto [x, y, z] = co_await when_all(on(a, on_where()), on(b, on_where()), on_where());
        EXPECT_EQ(x, a.get_id());
        EXPECT_NE(y, on_here());
        EXPECT_EQ(z, on_here());
        try {
            co_await when_all(on(a, on_throws()), on(b, on_where()));
            ADD_FAILURE();
        } catch (int) {
        }
    };
    coil::run(main());
}

TEST(On, TheTaskMayMove) {
    looper_executor a;
    looper_executor b;
    io_context other;
    other.start();
    auto wanders = [&]() -> task<int> {
        EXPECT_EQ(on_here(), a.get_id());
        co_await resume_on(b);
        EXPECT_EQ(on_here(), b.get_id());
        co_await resume_on(other);
        EXPECT_EQ(co_await sleep_for(1ms), 0);
        EXPECT_EQ(co_await on(b, on_where()), b.get_id());
        EXPECT_EQ(&this_context(), &other);
        co_return 5;
    };
    auto main = [&]() -> task<int> {
        io_context& home = this_context();
        const int n = co_await on(a, wanders());
        EXPECT_EQ(&this_context(), &home);
        co_return n;
    };
    EXPECT_EQ(coil::run(main()), 5);
    other.join();
}

TEST(On, G3_TheTaskInheritsTheStopToken) {
    io_context other;
    other.start();
    auto nap = []() -> task<int> { co_return co_await sleep_for(1h); };
    auto main = [&]() -> task<> {
        auto handle = spawn([](io_context& there, task<int> work) -> task<int> {
            co_return co_await on(there, std::move(work));
        }(other, nap()));
        co_await sleep_for(1ms);
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        const auto first = co_await when_any(on(other, nap()), sleep_for(1ms));
        EXPECT_EQ(first.index, 1U);
    };
    coil::run(main());
    other.join();
}

TEST(On, G5_AShutdownWaitsForTheTaskThatRuns) {
    looper_executor looper;
    io_context home;
    std::atomic<bool> ended{false};
    bool asked = false;
    auto work = [&](io_context& from) -> task<> {
        const auto token = co_await this_task::stop_token();
        EXPECT_FALSE(token.stop_requested());
        from.stop();
        while (!token.stop_requested()) {
            std::this_thread::yield();
        }
        asked = true;
        ended = true;
    };
    auto main = [&](io_context& from) -> task<> { co_await on(looper, work(from)); };
    home.co_spawn(main(home));
    home.run();
    EXPECT_TRUE(ended);
    EXPECT_TRUE(asked);
}

TEST(On, G5_AShutdownWithdrawsATaskThatHasNotBegun) {
    looper_executor looper;
    io_context home;
    int destroyed = 0;
    auto work = [](coil_test::on_destruction) -> task<> {
        ADD_FAILURE() << "the task began";
        co_return;
    };
    auto main = [&]() -> task<> {
        co_await on(looper, work(coil_test::on_destruction(destroyed)));
        ADD_FAILURE() << "the coroutine was resumed";
    };
    held hold(looper);
    std::thread opener;
    const auto thread = static_cast<pid_t>(::syscall(SYS_gettid));
    auto stops = [&]() -> task<> {
        co_await yield();
        this_context().stop();
        opener = std::thread([&] { // the shutdown waits for the looper, which this thread releases
            coil_test::wait_until_asleep(thread);
            hold.let_go();
        });
    };
    home.co_spawn(main());
    home.co_spawn(stops());
    home.run();
    opener.join();
    EXPECT_EQ(destroyed, 1);
}

TEST(On, G5_AShutdownWithdrawsATaskFromAContextThatDoesNotRun) {
    io_context other;
    int destroyed = 0;
    auto work = [](coil_test::on_destruction) -> task<> {
        ADD_FAILURE() << "the task began";
        co_return;
    };
    auto main = [&]() -> task<> {
        co_await on(other, work(coil_test::on_destruction(destroyed)));
        ADD_FAILURE() << "the coroutine was resumed";
    };
    {
        io_context home;
        home.co_spawn(main());
        auto stops = [&]() -> task<> {
            co_await yield();
            this_context().stop();
        };
        home.co_spawn(stops());
        home.run();
        EXPECT_EQ(destroyed, 1);
    }
    other.run();
}

TEST(On, G5_AShutdownStopsATaskOnAnotherContext) {
    io_context home;
    io_context other;
    other.start();
    int destroyed = 0;
    auto work = [](io_context& from, int& count) -> task<> {
        const coil_test::on_destruction guard(count);
        from.stop();
        EXPECT_EQ(co_await sleep_for(1h), -ECANCELED);
    };
    auto main = [&]() -> task<> { co_await on(other, work(home, destroyed)); };
    home.co_spawn(main());
    home.run();
    EXPECT_EQ(destroyed, 1);
    other.join();
}

/// The task waits for work on the context that shuts down, and is destroyed with that work.
TEST(On, G5_AShutdownDoesNotWaitForItself) {
    for (const bool again : {false, true}) {
        looper_executor looper;
        io_context home;
        int destroyed = 0;
        auto inner = [](int& count) -> task<> {
            const coil_test::on_destruction guard(count);
            this_context().stop();
            co_await shield(sleep_for(1h));
            ADD_FAILURE();
        };
        auto middle = [&](io_context& back) -> task<> {
            const coil_test::on_destruction guard(destroyed);
            co_await on(back, inner(destroyed)); // cancelled
            ADD_FAILURE();
        };
        auto main = [&]() -> task<> {
            if (again) {
                co_await on(home, middle(home)); // both on this context
            } else {
                co_await on(looper, middle(home));
            }
            ADD_FAILURE();
        };
        home.co_spawn(main());
        home.run();
        EXPECT_EQ(destroyed, 2) << again;
    }
}

/// The task moves to the context whose shutdown waits for it. Nothing runs there any more, so the
/// task is destroyed as well.
TEST(On, G5_AShutdownDestroysATaskThatMovesToTheContext) {
    looper_executor looper;
    io_context home;
    int destroyed = 0;
    auto comes = [](io_context& to, int& count) -> task<> {
        const coil_test::on_destruction guard(count);
        const auto token = co_await this_task::stop_token();
        to.stop();
        while (!token.stop_requested()) { // requested by the destructor, which waits for this task
            std::this_thread::yield();
        }
        co_await resume_on(to);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [&]() -> task<> { co_await on(looper, comes(home, destroyed)); };
    home.co_spawn(main());
    home.run();
    EXPECT_EQ(destroyed, 1);
}

/// A foreign coroutine that its owner destroys on the context's thread, which cannot wait for a
/// task of the same context.
TEST(On, G5_DestroyedByItsOwner) {
    looper_executor looper;
    std::array<int, 3> destroyed{};
    auto naps = [](int& count) -> task<> {
        const coil_test::on_destruction guard(count);
        co_await sleep_for(1h);
        co_await shield(sleep_for(1h));
        ADD_FAILURE();
    };
    std::atomic<bool> began{false};
    auto works = [&](int& count) -> task<> {
        const coil_test::on_destruction guard(count);
        const auto token = co_await this_task::stop_token();
        began = true;
        while (!token.stop_requested()) {
            std::this_thread::yield();
        }
    };
    auto main = [&]() -> task<> {
        io_context& here = this_context();
        auto waits_here = [](io_context& ctx, task<> work) -> coil_test::manual {
            co_await on(ctx, std::move(work));
            ADD_FAILURE();
        };
        auto waits_there = [](looper_executor& ex, task<> work) -> coil_test::manual {
            co_await on(ex, std::move(work));
            ADD_FAILURE();
        };
        { // destroyed before the task starts
            auto m = waits_here(here, naps(destroyed[0]));
            m.start();
        }
        {
            auto m = waits_here(here, naps(destroyed[1]));
            m.start();
            co_await sleep_for(1ms);
        }
        auto m = waits_there(looper, works(destroyed[2]));
        m.start();
        while (!began) {
            co_await yield();
        }
        m.destroy();
        EXPECT_EQ(co_await io::nop(), 0);
    };
    coil::run(main());
    EXPECT_EQ(destroyed[0], 0); // it was not started
    EXPECT_EQ(destroyed[1], 1);
    EXPECT_EQ(destroyed[2], 1);
}

TEST(On, G5_TheTargetContextStops) {
    io_context other;
    int destroyed = 0;
    auto work = [](int& count) -> task<> {
        const coil_test::on_destruction guard(count);
        this_context().stop();
        co_await sleep_for(1h);
    };
    auto main = [&]() -> task<bool> {
        bool cancelled = false;
        try {
            co_await on(other, work(destroyed));
        } catch (const std::system_error& e) {
            cancelled = e.code() == std::errc::operation_canceled;
        }
        EXPECT_EQ(co_await io::nop(), 0);
        co_return cancelled;
    };
    other.start();
    EXPECT_TRUE(coil::run(main()));
    EXPECT_EQ(destroyed, 1);
    other.join();
    { // never run
        auto gone = std::make_unique<io_context>();
        auto goes = [&]() -> task<> {
            co_await yield();
            gone.reset();
        };
        auto waits = [&]() -> task<bool> {
            co_spawn(goes());
            try {
                co_await on(*gone, on_where());
            } catch (const std::system_error& e) {
                co_return e.code() == std::errc::operation_canceled;
            }
            co_return false;
        };
        EXPECT_TRUE(coil::run(waits()));
    }
}

TEST(On, G1_AnExecutorThatDropsIt) {
    looper_executor looper;
    auto main = [&]() -> task<bool> {
        try {
            co_await on(looper, on_where());
        } catch (const std::system_error& e) {
            co_return e.code() == std::errc::operation_canceled;
        }
        co_return false;
    };
    {
        held hold(looper);
        io_context home;
        auto drops = [&]() -> task<> {
            co_await yield();
            EXPECT_EQ(looper.shutdown(false), 1U);
        };
        auto handle = home.spawn(main());
        home.co_spawn(drops());
        home.run();
        EXPECT_TRUE(handle.get());
    }
    EXPECT_TRUE(coil::run(main())); // at once
}

TEST(On, G12_ExceptionsOfForeignExecutorsPropagate) {
    struct full {
        void execute(const std::function<void()>&) { throw std::length_error("full"); }
    } ex;
    // Throws although it has stored the function, which it will call.
    struct stores_and_throws {
        foreign_executor inner;
        void execute(std::function<void()>&& f) {
            inner.execute(std::move(f));
            throw std::length_error("nearly full");
        }
    } other;
    auto work = []() -> task<int> { co_return 1; };
    auto main = [&]() -> task<int> {
        int caught = 0;
        try {
            co_await on(ex, work());
        } catch (const std::length_error&) {
            ++caught;
        }
        try {
            co_await schedule(ex);
        } catch (const std::length_error&) {
            ++caught;
        }
        co_return caught + co_await on(other, work());
    };
    io_context context;
    auto handle = context.spawn(main());
    auto runs = [&]() -> task<> {
        co_await yield();
        other.inner.run_all();
    };
    context.co_spawn(runs());
    context.run();
    EXPECT_EQ(handle.get(), 3);
    auto belongs = [](executor_arg_t, full&) -> async_task<int, full> { co_return 1; };
    EXPECT_THROW(belongs(executor_arg, ex).get(), std::length_error);
}

TEST(On, G1_TheCallersExecutorWasShutDown) {
    by_hand there;
    looper_executor home;
    std::binary_semaphore sent{0};
    auto main = [&]() -> task<int> {
        co_await resume_on(home);
        try {
            home.execute([&] { sent.release(); });
            co_await on(there, on_where());
        } catch (const std::system_error& e) {
            co_return e.code() == std::errc::operation_canceled ? 1 : 2;
        }
        co_return 0;
    };
    io_context context;
    auto handle = context.spawn(main());
    context.run();
    sent.acquire();
    home.shutdown();
    home.join();
    there.run_all(); // resumes the caller here, because `home` is shut down
    EXPECT_TRUE(handle.done());
    EXPECT_EQ(handle.get(), 1);
}

TEST(On, G12_AnExceptionIsReportedIfTheCallersExecutorWasShutDown) {
    by_hand there;
    by_hand home;
    auto fails = []() -> task<> {
        throw std::runtime_error("of the task");
        co_return;
    };
    auto main = [&]() -> task<bool> {
        co_await resume_on(home);
        try {
            co_await on(there, fails());
        } catch (const std::system_error& e) {
            co_return e.code() == std::errc::operation_canceled;
        }
        co_return false;
    };
    io_context context;
    auto handle = context.spawn(main());
    context.run();
    home.run_all();
    there.run_all();
    testing::internal::CaptureStderr();
    home.drop_all(); // resumes the caller here
    EXPECT_NE(testing::internal::GetCapturedStderr().find("of the task"), std::string::npos);
    EXPECT_TRUE(handle.get());
}

TEST(On, G9_ManyAtOnce) {
    const int count = coil_test::rounds(coil_test::sanitized ? 500 : 5000, 100'000);
    looper_executor a;
    looper_executor b;
    auto one = [&](int i) -> task<int> {
        const int n = co_await on(i % 2 == 0 ? a : b, [](int k) -> task<int> { co_return k; }(i));
        EXPECT_EQ(n, i);
        co_return 1;
    };
    auto main = [&]() -> task<int> {
        std::vector<task<int>> all;
        for (int i = 0; i < count; ++i) {
            all.push_back(one(i));
        }
        int sum = 0;
        for (const int n : co_await when_all(std::move(all))) {
            sum += n;
        }
        co_return sum;
    };
    EXPECT_EQ(coil::run(main()), count);
}

/// A context that stops at any time during many round trips.
TEST(On, G5_StoppedAtAnyMoment) {
    for (int i = 0; i < coil_test::rounds(coil_test::sanitized ? 50 : 300, 6'000); ++i) {
        looper_executor looper;
        int destroyed = 0;
        {
            io_context home;
            auto trips = [&](coil_test::on_destruction) -> task<> {
                for (;;) {
                    co_await on(looper, on_where());
                }
            };
            home.co_spawn(trips(coil_test::on_destruction(destroyed)));
            home.co_spawn(trips(coil_test::on_destruction(destroyed)));
            std::atomic<bool> stopped{false};
            std::thread stopper([&, i] {
                for (int spin = 0; spin < i * 200; ++spin) {
                    stopped.load();
                }
                home.stop();
                stopped = true;
            });
            home.run();
            stopper.join();
        }
        EXPECT_EQ(destroyed, 2);
    }
}

TEST(On, G5_BothContextsStopAtOnce) {
    for (int round = 0; round < 100; ++round) {
        io_context home;
        io_context other;
        int destroyed = 0;
        std::binary_semaphore begun{0};
        auto work = [&](coil_test::on_destruction) -> task<> {
            begun.release();
            for (;;) {
                co_await yield();
            }
        };
        auto main = [&]() -> task<> {
            co_await on(other, work(coil_test::on_destruction(destroyed)));
        };
        home.co_spawn(main());
        home.start();
        other.start();
        begun.acquire();
        other.stop();
        home.stop();
        home.join();
        other.join();
        EXPECT_EQ(destroyed, 1);
    }
}

TEST(On, G10_InlineDoesNotNest) {
    const int many = coil_test::sanitized ? 20'000 : 200'000;
    looper_executor looper;
    auto main = [&]() -> task<int> {
        co_await resume_on(looper);
        inline_executor ex;
        int count = 0;
        for (int i = 0; i < many; ++i) {
            count += co_await on(ex, []() -> task<int> { co_return 1; }());
        }
        co_return count;
    };
    EXPECT_EQ(coil::run(main()), many);
}

} // namespace
