// resume_on() and schedule(): tasks that move to an executor and back.

#include "exec/support.hpp"

#include <functional>
#include <stdexcept>
#include <vector>

using namespace exec_test;

namespace {

std::thread::id schedule_here() { return std::this_thread::get_id(); }

TEST(ResumeOnExecutor, TheTaskAndItsAwaitersMove) {
    looper_executor looper;
    auto child = [](looper_executor& to) -> task<std::thread::id> {
        co_await resume_on(to);
        co_return schedule_here();
    };
    auto main = [&](looper_executor& to) -> task<> {
        io_context& home = this_context();
        const auto at_home = schedule_here();
        EXPECT_EQ(co_await child(to), to.get_id());
        EXPECT_EQ(schedule_here(), to.get_id()); // the parent runs where its child ended
        co_await resume_on(to);                  // has no effect here
        EXPECT_EQ(schedule_here(), to.get_id());
        co_await resume_on(home);
        EXPECT_EQ(schedule_here(), at_home);
        EXPECT_EQ(co_await io::nop(), 0);
    };
    coil::run(main(looper));
    runtime rt(2);
    rt.block_on(main(looper));
}

TEST(ResumeOnExecutor, TheTaskMovesManyTimes) {
    looper_executor looper;
    async_executor threads;
    const int hops = coil_test::rounds(coil_test::sanitized ? 200 : 1000, 20'000);
    auto main = [&]() -> task<int> {
        io_context& home = this_context();
        int right = 0;
        for (int i = 0; i < hops; ++i) {
            co_await resume_on(looper);
            right += schedule_here() == looper.get_id() ? 1 : 0;
            if (i % 16 == 0) {
                co_await resume_on(threads);
                right += schedule_here() != looper.get_id() ? 0 : -1000;
            }
            co_await resume_on(home);
            right += &this_context() == &home ? 1 : 0;
        }
        co_return right;
    };
    EXPECT_EQ(coil::run(main()), 2 * hops);
}

TEST(ResumeOnExecutor, TheTaskMovesToAnAnyExecutor) {
    looper_executor looper;
    io_context other;
    other.start();
    auto main = [](any_executor a, any_executor b) -> task<> {
        io_context& home = this_context();
        co_await resume_on(a);
        EXPECT_EQ(current_executor_is(a), true);
        co_await resume_on(b);
        EXPECT_NE(&this_context(), &home);
        EXPECT_EQ(co_await io::nop(), 0); // the any_executor refers to a context
        EXPECT_EQ(co_await sleep_for(1ms), 0);
        co_await schedule(any_executor(home));
        EXPECT_EQ(&this_context(), &home);
    };
    coil::run(main(looper, other));
    other.join();
}

TEST(ResumeOnExecutor, G5_AShutdownDoesNotDestroyATaskOnAnExecutor) {
    looper_executor looper;
    int destroyed = 0;
    io_context home;
    std::binary_semaphore away{0};
    std::binary_semaphore go_on{0};
    auto work = [&](coil_test::on_destruction local) -> task<int> {
        const coil_test::on_destruction guard = std::move(local);
        co_await resume_on(looper);
        away.release();
        go_on.acquire();
        EXPECT_EQ(destroyed, 0);
        co_return 7;
    };
    auto handle = home.spawn(work(coil_test::on_destruction(destroyed)));
    auto stops = [&]() -> task<> {
        away.acquire();
        this_context().stop();
        co_return;
    };
    home.co_spawn(stops());
    home.run();
    go_on.release();
    EXPECT_EQ(handle.get(), 7);
    EXPECT_EQ(destroyed, 1);
}

TEST(ResumeOnExecutor, G12_AnExceptionOfADetachedTaskThere) {
    testing::internal::CaptureStderr();
    {
        looper_executor looper;
        io_context home;
        auto work = [](looper_executor& to) -> task<> {
            co_await resume_on(to);
            throw std::runtime_error("thrown on a looper");
        };
        home.co_spawn(work(looper));
        home.run();
        looper.shutdown();
        looper.join();
    }
    EXPECT_NE(testing::internal::GetCapturedStderr().find("thrown on a looper"), std::string::npos);
}

TEST(ResumeOnExecutor, G1_ADroppedTaskReturnsToItsContext) {
    auto move = [](looper_executor& to, int& destroyed) -> task<bool> {
        const coil_test::on_destruction guard(destroyed);
        const auto at_home = schedule_here();
        bool cancelled = false;
        try {
            co_await resume_on(to);
        } catch (const std::system_error& e) {
            cancelled = e.code() == std::errc::operation_canceled;
        }
        EXPECT_EQ(schedule_here(), at_home);
        EXPECT_EQ(co_await io::nop(), 0);
        co_return cancelled;
    };
    int destroyed = 0;
    looper_executor looper;
    { // queued and then dropped
        held hold(looper);
        std::thread dropper;
        auto main = [&]() -> task<bool> {
            auto handle = spawn(move(looper, destroyed));
            co_await yield();
            dropper = std::thread([&] { EXPECT_EQ(looper.shutdown(false), 1U); });
            co_return co_await handle;
        };
        EXPECT_TRUE(coil::run(main()));
        dropper.join();
    }
    EXPECT_TRUE(coil::run(move(looper, destroyed))); // dropped at once
    EXPECT_EQ(destroyed, 2);
}

TEST(ResumeOnExecutor, G5_G12_ADroppedTaskOfAContextThatDoesNotRun) {
    int destroyed = 0;
    by_hand ex;
    {
        io_context home;
        home.co_spawn([](by_hand& to, int& count) -> task<> {
            const coil_test::on_destruction guard(count);
            try {
                co_await resume_on(to);
                ADD_FAILURE() << "the coroutine was resumed";
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::operation_canceled);
            }
        }(ex, destroyed));
        home.run();
        EXPECT_EQ(ex.size(), 1U);
        ex.drop_all(); // resumes the task here: its context does not run any more
        EXPECT_EQ(destroyed, 1);
    }
}

TEST(ResumeOnExecutor, ADroppedTaskReturnsToItsExecutor) {
    looper_executor home;
    by_hand away;
    std::binary_semaphore sent{0};
    auto work = [](looper_executor& a, by_hand& b, std::binary_semaphore& s) -> task<int> {
        co_await resume_on(a);
        try {
            a.execute([&s] { s.release(); }); // runs after this task has left
            co_await resume_on(b);
        } catch (const std::system_error&) {
            co_return schedule_here() == a.get_id() ? 1 : 2;
        }
        co_return 0;
    };
    io_context context;
    auto handle = context.spawn(work(home, away, sent));
    context.run();
    sent.acquire();
    away.drop_all();
    EXPECT_EQ(handle.get(), 1);
}

TEST(ResumeOnExecutor, TheTaskStaysIfTheExecutorThrows) {
    struct refusing {
        void submit(detail::work&) { throw std::runtime_error("no"); }
        void execute(const std::function<void()>&) {}
    } ex;
    auto main = [](refusing& to) -> task<int> {
        int caught = 0;
        try {
            co_await resume_on(to);
        } catch (const std::runtime_error&) {
            ++caught;
        }
        EXPECT_EQ(co_await sleep_for(1us), 0); // it is still this context's
        co_return caught;
    };
    io_context context;
    EXPECT_EQ(coil_test::run_on(context, main(ex)), 1);
}

TEST(ResumeOnExecutor, AChildOfACombinationCannotMove) {
    looper_executor looper;
    auto child = [](looper_executor& to) -> task<int> {
        try {
            co_await resume_on(to);
        } catch (const std::logic_error&) {
            co_return 1;
        }
        co_return 0;
    };
    auto main = [&]() -> task<int> {
        auto [a, b] = co_await when_all(child(looper), child(looper));
        co_return a + b;
    };
    EXPECT_EQ(coil::run(main()), 2);
}

TEST(ResumeOnExecutor, G5_AnInlineExecutorLeavesTheTaskInItsContext) {
    int destroyed = 0;
    io_context context;
    context.co_spawn([](int& count) -> task<> {
        const coil_test::on_destruction guard(count);
        inline_executor ex;
        co_await resume_on(ex);
        co_await schedule(ex);
        foreign_inline other;
        co_await schedule(other);
        co_await sleep_for(1h);
    }(destroyed));
    context.co_spawn([]() -> task<> {
        co_await sleep_for(2ms);
        this_context().stop();
    }());
    context.run();
    EXPECT_EQ(destroyed, 1);
}

TEST(ResumeOnExecutor, ForeignExecutorsMayDropFunctions) {
    foreign_executor ex;
    auto main = [](foreign_executor& to) -> task<int> {
        io_context& home = this_context();
        int cancelled = 0;
        co_await schedule(to);
        co_await resume_on(home);
        try {
            co_await schedule(to);
        } catch (const std::system_error& e) {
            cancelled += e.code() == std::errc::operation_canceled ? 1 : 0;
        }
        co_return cancelled;
    };
    io_context context;
    auto handle = context.spawn(main(ex));
    context.run();
    ex.run_all();
    context.run();
    EXPECT_EQ(ex.queue.size(), 1U);
    ex.queue.clear();
    context.run();
    EXPECT_EQ(handle.get(), 1);
}

TEST(ResumeOnExecutor, ScheduleRunsQueuedWorkFirst) {
    by_hand ex;
    std::vector<int> order;
    auto one = [&](int number) -> task<> {
        co_await schedule(ex);
        order.push_back(number);
        co_await resume_on(ex); // has no effect here
        order.push_back(number);
        co_await schedule(ex);
        order.push_back(number);
    };
    io_context context;
    context.co_spawn(one(1));
    context.co_spawn(one(2));
    context.run();
    EXPECT_EQ(ex.run_all(), 4);
    EXPECT_EQ(order, (std::vector{1, 1, 2, 2, 1, 2}));
}

TEST(ResumeOnExecutorDeathTest, AwaitsThatNeedAContextTerminateWithAMessage) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            looper_executor looper;
            coil::run([](looper_executor& to) -> task<> {
                co_await resume_on(to);
                co_await io::nop();
            }(looper));
        },
        "outside of an io_context");
}

TEST(ResumeOnExecutor, G10_InlineDoesNotNest) {
    const int many = coil_test::sanitized ? 20'000 : 300'000;
    auto main = [](int rounds) -> task<int> {
        inline_executor ex;
        foreign_inline other;
        int count = 0;
        for (int i = 0; i < rounds; ++i) {
            co_await schedule(ex);
            co_await schedule(other);
            ++count;
        }
        co_return count;
    };
    EXPECT_EQ(coil::run(main(many)), many);
    looper_executor looper;
    auto there = [&](int rounds) -> task<int> {
        co_await resume_on(looper);
        co_return co_await main(rounds);
    };
    EXPECT_EQ(coil::run(there(many)), many);
}

} // namespace
