// spawn() and join_handle.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::on_destruction;

namespace {

class JoinHandle : public ::testing::Test {};

task<int> later(int n, std::chrono::milliseconds d = 1ms) {
    co_await sleep_for(d);
    co_return n;
}
task<int> at_once(int n) { co_return n; }
task<int> failing() {
    co_await yield();
    throw std::runtime_error("child");
}
task<> sleeper(on_destruction, io_result& result) { result = co_await sleep_for(24h); }

TEST_F(JoinHandle, AwaitReturnsTheValue) {
    auto main = []() -> task<int> {
        join_handle<int> slow = coil::spawn(later(1));
        join_handle<int> fast = coil::spawn(at_once(2));
        const int a = co_await slow;
        const int b = co_await fast; // done already
        co_return 10 * a + b;
    };
    EXPECT_EQ(coil::run(main()), 12);
}

TEST_F(JoinHandle, AwaitOfATemporary) {
    auto main = []() -> task<int> { co_return co_await coil::spawn(later(5)); };
    EXPECT_EQ(coil::run(main()), 5);
}

TEST_F(JoinHandle, CarriesReferencesAndMoveOnlyValues) {
    static int target;
    auto refer = []() -> task<int&> { co_return target; };
    auto make = []() -> task<std::unique_ptr<int>> {
        co_await yield();
        co_return std::make_unique<int>(8);
    };
    auto main = [](auto r, auto m) -> task<> {
        auto by_reference = coil::spawn(r());
        auto by_move = coil::spawn(m());
        int& got = co_await by_reference;
        EXPECT_EQ(&got, &target);
        EXPECT_EQ(*co_await by_move, 8);
    };
    coil::run(main(refer, make));
}

TEST_F(JoinHandle, MayBeOfVoid) {
    int n = 0;
    auto set = [](int& to) -> task<> {
        co_await yield();
        to = 3;
    };
    auto main = [](auto f, int& to) -> task<> {
        co_await coil::spawn(f(to));
        EXPECT_EQ(to, 3);
    };
    coil::run(main(set, n));
}

TEST_F(JoinHandle, G12_AwaitThrowsWhatTheTaskThrew) {
    auto main = []() -> task<std::string> {
        join_handle<int> h = coil::spawn(failing());
        try {
            co_await h;
        } catch (const std::runtime_error& e) {
            co_return e.what();
        }
        co_return "nothing";
    };
    EXPECT_EQ(coil::run(main()), "child");
}

TEST_F(JoinHandle, G12_AThrownAndJoinedExceptionIsNotReported) {
    int reported = 0;
    io_context ctx(coil_test::with(
        [&](auto& o) { o.on_unhandled_exception = [&](std::exception_ptr) { ++reported; }; }));
    auto handle = ctx.spawn(failing());
    ctx.run();
    EXPECT_THROW(handle.get(), std::runtime_error);
    {
        [[maybe_unused]] const auto gone = std::move(handle);
    }
    EXPECT_EQ(reported, 0);
    EXPECT_EQ(ctx.metrics().unhandled_exceptions, 0U);
}

TEST_F(JoinHandle, GetAfterRun) {
    io_context ctx;
    auto handle = ctx.spawn(later(7));
    EXPECT_FALSE(handle.done());
    ctx.run();
    EXPECT_TRUE(handle.done());
    EXPECT_EQ(handle.get(), 7);
}

TEST_F(JoinHandle, GetBlocksAPlainThreadUntilTheTaskIsDone) {
    io_context ctx;
    auto handle = ctx.spawn(later(7, 20ms));
    std::thread runner([&] { ctx.run(); });
    EXPECT_EQ(handle.get(), 7);
    runner.join();
}

// mistake 10: `get()` of a join_handle on the thread of its context
// shows: an exception with `std::errc::resource_deadlock_would_occur`
TEST_F(JoinHandle, GetOnTheContextsOwnThreadWouldDeadlock_Throws) {
    auto main = []() -> task<> {
        join_handle<int> h = coil::spawn(later(1));
        try {
            h.get();
            ADD_FAILURE() << "did not throw";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
        }
        EXPECT_EQ(co_await h, 1);
    };
    coil::run(main());
}

TEST_F(JoinHandle, AwaitFromAnotherContext) {
    io_context worker;
    worker.start();
    auto main = [](io_context& w) -> task<int> {
        io_context* const home = &this_context();
        int sum = 0;
        for (int i = 0; i < 50; ++i) {
            auto handle = w.spawn(i % 2 == 0 ? later(i, 0ms) : at_once(i));
            sum += co_await handle;
            EXPECT_EQ(&this_context(), home);
        }
        try {
            co_await w.spawn(failing());
            ADD_FAILURE() << "did not throw";
        } catch (const std::runtime_error&) {
            sum += 1000;
        }
        co_return sum;
    };
    // Keeps the worker's run() from ending between the spawns.
    [[maybe_unused]] auto alive = worker.spawn(later(0, 24h));
    EXPECT_EQ(coil::run(main(worker)), 1000 + 49 * 50 / 2);
    worker.stop();
    worker.join();
}

TEST_F(JoinHandle, DroppedDetachesTheTask) {
    int destroyed = 0;
    bool ended = false;
    auto work = [](on_destruction, bool& flag) -> task<int> {
        co_await sleep_for(1ms);
        flag = true;
        co_return 1;
    };
    io_context ctx;
    {
        [[maybe_unused]] const auto handle = ctx.spawn(work(on_destruction(destroyed), ended));
    }
    ctx.run();
    EXPECT_TRUE(ended);
    EXPECT_EQ(destroyed, 1);
}

TEST_F(JoinHandle, AssignmentDetachesThePreviousTask) {
    io_context ctx;
    auto handle = ctx.spawn(later(1));
    handle = ctx.spawn(later(2));
    ctx.run();
    EXPECT_EQ(handle.get(), 2);
}

TEST_F(JoinHandle, G12_ExceptionOfADroppedHandleGoesToTheHandler) {
    std::string what;
    io_context ctx(coil_test::with([&](auto& o) {
        o.on_unhandled_exception = [&](std::exception_ptr e) {
            try {
                std::rethrow_exception(e);
            } catch (const std::exception& x) {
                what += x.what();
            }
        };
    }));
    {
        [[maybe_unused]] const auto dropped_before = ctx.spawn(failing());
    }
    ctx.run();
    EXPECT_EQ(what, "child");
    EXPECT_EQ(ctx.metrics().unhandled_exceptions, 1U);
}

TEST_F(JoinHandle, G12_DroppedByACoroutineAfterTheTaskFailed_GoesToTheHandlerToo) {
    int reported = 0;
    io_context ctx(coil_test::with(
        [&](auto& o) { o.on_unhandled_exception = [&](std::exception_ptr) { ++reported; }; }));
    auto main = []() -> task<> {
        {
            const auto handle = coil::spawn(failing());
            while (!handle.done()) {
                co_await yield();
            }
        }
    };
    coil_test::run_on(ctx, main());
    EXPECT_EQ(reported, 1);
}

TEST_F(JoinHandle, G3_CancelStopsTheTask) {
    int destroyed = 0;
    io_result slept(1);
    auto main = [](int& count, io_result& result) -> task<> {
        join_handle<> h = coil::spawn(sleeper(on_destruction(count), result));
        co_await yield();
        h.cancel();
        h.cancel();
        co_await h;
    };
    coil::run(main(destroyed, slept));
    EXPECT_EQ(slept, -ECANCELED);
    EXPECT_EQ(destroyed, 1);
}

TEST_F(JoinHandle, G3_CancelBeforeTheTaskHasStarted) {
    int destroyed = 0;
    io_result slept(1);
    auto main = [](int& count, io_result& result) -> task<> {
        join_handle<> h = coil::spawn(sleeper(on_destruction(count), result));
        h.cancel();
        co_await h;
    };
    coil::run(main(destroyed, slept));
    EXPECT_EQ(slept, -ECANCELED);
}

TEST_F(JoinHandle, G3_CancelAfterTheEndHasNoEffect) {
    io_context ctx;
    auto handle = ctx.spawn(at_once(1));
    ctx.run();
    handle.cancel();
    EXPECT_EQ(handle.get(), 1);
}

TEST_F(JoinHandle, G9_CancelFromAnotherThread) {
    for (int round = 0; round < coil_test::rounds(100, 3000); ++round) {
        int destroyed = 0;
        io_result slept(1);
        io_context ctx;
        join_handle<> h = ctx.spawn(sleeper(on_destruction(destroyed), slept));
        std::thread runner([&] { ctx.run(); });
        h.cancel();
        h.get();
        runner.join();
        ASSERT_EQ(slept, -ECANCELED);
        ASSERT_EQ(destroyed, 1);
    }
}

TEST_F(JoinHandle, G5_JoiningATaskOfAStoppedContextThrows) {
    io_context ctx;
    int destroyed = 0;
    io_result slept(1);
    auto handle = ctx.spawn(sleeper(on_destruction(destroyed), slept));
    ctx.stop();
    ctx.run();
    EXPECT_EQ(destroyed, 1);
    ASSERT_TRUE(handle.done());
    try {
        handle.get();
        FAIL() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
}

TEST_F(JoinHandle, G5_OutlivesItsContext) {
    std::optional<join_handle<int>> handle;
    {
        io_context ctx;
        handle.emplace(ctx.spawn(later(3, 24h * 1)));
    }
    EXPECT_TRUE(handle->done());
    EXPECT_THROW(handle->get(), std::system_error);
}

TEST_F(JoinHandle, G5_AwaitedTaskAbandonedByAnotherContext) {
    io_context worker;
    worker.start();
    auto main = [](io_context& w) -> task<std::error_code> {
        auto handle = w.spawn(later(1, 24h * 1));
        coil::co_spawn([](io_context& context) -> task<> {
            co_await sleep_for(5ms);
            context.stop();
        }(w));
        try {
            co_await handle;
        } catch (const std::system_error& e) {
            co_return e.code();
        }
        co_return std::error_code();
    };
    EXPECT_EQ(coil::run(main(worker)), std::errc::operation_canceled);
    worker.join();
}

TEST_F(JoinHandle, G5_AnAwaiterDestroyedWhileItWaits) {
    // The awaiting frames are destroyed with their context while the task runs on another one.
    io_context worker;
    const coil_test::pipe_pair p;
    int read = 0;
    auto wait = [](int fd, int& result) -> task<int> {
        char c;
        result = co_await io::read(fd, {&c, 1});
        co_return result;
    };
    int destroyed = 0;
    bool went_on = false;
    auto awaiting = [](join_handle<int> h, coil_test::on_destruction, bool& after) -> task<> {
        co_await h;
        after = true;
    };
    auto handle = worker.spawn(wait(p.in, read));
    worker.start();
    {
        io_context mine;
        mine.co_spawn(awaiting(std::move(handle), coil_test::on_destruction(destroyed), went_on));
        auto stopper = [](io_context& c) -> task<> {
            co_await sleep_for(1ms);
            c.stop();
        };
        mine.co_spawn(stopper(mine));
        mine.run();
        EXPECT_EQ(destroyed, 1);
    }
    EXPECT_FALSE(went_on);
    p.put("x");
    worker.join();
    EXPECT_EQ(read, 1); // the task is not affected
}

TEST_F(JoinHandle, G5_DestroyedWhileTheNotificationIsUnderWay) {
    for (int round = 0; round < coil_test::rounds(100, 3000); ++round) {
        io_context worker;
        auto handle = worker.spawn(later(1, 0ms));
        auto awaiting = [](join_handle<int> h) -> task<> { co_await h; };
        io_context mine;
        mine.co_spawn(awaiting(std::move(handle)));
        worker.start();
        std::thread stopper([&] { mine.stop(); });
        mine.run();
        stopper.join();
        worker.join();
    }
}

TEST_F(JoinHandle, ReturnsTheResultOnce) {
    io_context ctx;
    auto value = ctx.spawn(at_once(1));
    auto error = ctx.spawn(failing());
    ctx.run();
    EXPECT_EQ(value.get(), 1);
    EXPECT_THROW(value.get(), std::logic_error);
    EXPECT_THROW(error.get(), std::runtime_error);
    EXPECT_THROW(error.get(), std::logic_error);
}

TEST_F(JoinHandle, IsJoinedByOneTaskAtATime) {
    auto joins = [](join_handle<int>& h) -> task<int> { co_return co_await h; };
    auto main = [](auto f) -> task<> {
        join_handle<int> h = coil::spawn(later(1));
        auto first = coil::spawn(f(h));
        auto second = coil::spawn(f(h));
        EXPECT_EQ(co_await first, 1);
        try {
            co_await second;
            ADD_FAILURE() << "did not throw";
        } catch (const std::logic_error&) {
        }
    };
    coil::run(main(joins));
}

TEST_F(JoinHandle, TenThousandAtOnce) {
    auto main = []() -> task<long> {
        std::vector<join_handle<int>> handles;
        for (int i = 0; i < 10'000; ++i) {
            handles.push_back(coil::spawn(at_once(i)));
        }
        long sum = 0;
        for (auto& h : handles) {
            sum += co_await h;
        }
        co_return sum;
    };
    EXPECT_EQ(coil::run(main()), 10'000L * 9'999 / 2);
}

TEST(JoinHandleDeathTest, UsingAMovedOneEndsTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    io_context context;
    auto first = context.spawn(at_once(1));
    [[maybe_unused]] const auto second = std::move(first);
    const char* const message = "coil: a join_handle that was moved from is used";
    // NOLINTBEGIN(bugprone-use-after-move)
    EXPECT_DEATH(first.cancel(), message);
    EXPECT_DEATH(static_cast<void>(first.done()), message);
    EXPECT_DEATH(first.get(), message);
    EXPECT_DEATH(static_cast<void>(first.operator co_await()), message);
    // NOLINTEND(bugprone-use-after-move)
}

} // namespace
