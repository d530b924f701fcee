// The executor concept, the executors without a queue, and any_executor.

#include "exec/support.hpp"

#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>

using namespace exec_test;

namespace {

static_assert(executor<inline_executor>);
static_assert(executor<const inline_executor>);
static_assert(executor<new_thread_executor>);
static_assert(executor<async_executor>);
static_assert(executor<looper_executor>);
static_assert(executor<io_context>);
static_assert(executor<runtime>);
static_assert(executor<any_executor>);
static_assert(executor<foreign_executor>);
static_assert(!executor<int>);
static_assert(detail::work_executor<io_context> && detail::work_executor<runtime>);
static_assert(detail::work_executor<any_executor> && !detail::work_executor<foreign_executor>);

TEST(Executors, InlineRunsAtOnceAndReportsExceptions) {
    int calls = 0;
    inline_executor ex;
    ex.execute([&, owned = std::make_unique<int>(3)] { calls += *owned; });
    EXPECT_EQ(calls, 3);
    testing::internal::CaptureStderr();
    ex.execute([] { throw std::runtime_error("left an inline function"); });
    EXPECT_NE(testing::internal::GetCapturedStderr().find("left an inline function"),
              std::string::npos);
    EXPECT_EQ(ex, inline_executor());
}

TEST(Executors, G12_AnExceptionThatLeavesAFunctionIsReported) {
    testing::internal::CaptureStderr();
    {
        new_thread_executor ex;
        ex.execute([] { throw std::runtime_error("left a thread"); });
    }
    EXPECT_NE(testing::internal::GetCapturedStderr().find("left a thread"), std::string::npos);
}

/// None of `count` functions returns before all of them have started.
template <class E>
void executors_run_together(int count) {
    std::mutex m;
    std::set<std::thread::id> threads;
    {
        E ex;
        std::latch all(count);
        for (int i = 0; i < count; ++i) {
            ex.execute([&] {
                {
                    const std::lock_guard lock(m);
                    threads.insert(std::this_thread::get_id());
                }
                all.arrive_and_wait();
            });
        }
        all.wait();
        ex.join();
        EXPECT_EQ(ex.running(), 0U);
        ex.execute([] {}); // the executor can be used after join()
    }
    EXPECT_EQ(threads.size(), static_cast<std::size_t>(count));
}

TEST(Executors, EachFunctionRunsOnANewThread) {
    executors_run_together<new_thread_executor>(50);
    executors_run_together<async_executor>(50);
}

TEST(Executors, NoThreadOutlivesItsExecutor) {
    std::atomic<int> ended{0};
    {
        async_executor ex;
        for (int i = 0; i < 20; ++i) {
            ex.execute([&] {
                std::this_thread::sleep_for(1ms);
                ++ended;
            });
        }
    }
    EXPECT_EQ(ended, 20);
}

TEST(Executors, DestroyedOnOneOfItsThreads) {
    std::binary_semaphore done{0};
    int others = 0;
    auto* const ex = new new_thread_executor;
    ex->execute([&, ex] {
        ex->execute([&] { others = 1; });
        EXPECT_THROW(ex->join(), std::system_error);
        delete ex; // waits for the executor's other thread, not for this one
        EXPECT_EQ(others, 1);
        done.release();
    });
    done.acquire();
}

template <class E>
class ThreadPerWork : public testing::Test {};
using thread_per_work_types = testing::Types<new_thread_executor, async_executor>;
TYPED_TEST_SUITE(ThreadPerWork, thread_per_work_types);

TYPED_TEST(ThreadPerWork, G5_AStoppedOneDropsSubmittedFunctions) {
    TypeParam ex;
    ex.stop();
    auto guard = std::make_shared<int>();
    ex.execute([guard] { ADD_FAILURE() << "the function was called"; });
    EXPECT_EQ(guard.use_count(), 1);
    auto work = [](executor_arg_t, TypeParam&) -> async_task<int, TypeParam> { co_return 1; };
    EXPECT_TRUE(throws_cancelled([&] { work(executor_arg, ex).get(); }));
    ex.join();
}

async_task<int, async_executor> pong() { co_return 1; }
async_task<void, new_thread_executor> ping(std::latch& begun) {
    for (int left = 10;; --left) {
        co_await pong();
        if (left == 0) {
            begun.count_down();
        }
    }
}

/// An executor may have no thread for a moment, although the detached task will submit more work.
TEST(DefaultExecutorsDeathTest, G5_TheProgramEndsWhileOneCallsAnother) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            static std::latch begun(1);
            {
                const auto detached = ping(begun);
            }
            begun.wait();
            std::exit(0);
        },
        testing::ExitedWithCode(0), "");
}

TEST(Executors, AContextExecutes) {
    io_context context;
    std::vector<int> order;
    context.execute([&] { order.push_back(1); });
    context.execute([&, owned = std::make_unique<int>(2)] { order.push_back(*owned); });
    context.run();
    EXPECT_EQ(order, (std::vector{1, 2}));
    std::atomic<int> calls{0};
    runtime rt(2);
    for (int i = 0; i < 10; ++i) {
        rt.execute([&] { ++calls; });
    }
    rt.run();
    EXPECT_EQ(calls, 10);
}

TEST(Executors, G5_ADestroyedContextDropsSubmittedFunctions) {
    int destroyed = 0;
    int dropped = 0;
    struct told final : detail::work {
        explicit told(int& count)
            : work([](work& w, fate what) noexcept {
                  static_cast<told&>(w).dropped += what == fate::dropped ? 1 : 0;
              }),
              dropped(count) {}
        int& dropped;
    } w(dropped);
    {
        io_context context;
        context.execute([guard = coil_test::on_destruction(destroyed)] {
            ADD_FAILURE() << "the function was called";
        });
        context.submit(w);
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(dropped, 1);
}

// ---- any_executor

TEST(AnyExecutor, RefersToANamedOne) {
    by_hand ex;
    any_executor a = ex;
    any_executor b = a;
    EXPECT_TRUE(a);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.target<by_hand>(), &ex);
    EXPECT_EQ(a.target<looper_executor>(), nullptr);
    int calls = 0;
    a.execute([&] { ++calls; });
    b.execute([&] { ++calls; });
    EXPECT_EQ(ex.size(), 2U);
    EXPECT_EQ(ex.run_all(), 2);
    EXPECT_EQ(calls, 2);
    by_hand other;
    EXPECT_NE(a, any_executor(other));
}

TEST(AnyExecutor, OwnsATemporary) {
    static int alive;
    alive = 0;
    struct counted {
        counted() { ++alive; }
        counted(counted&&) noexcept { ++alive; }
        ~counted() { --alive; }
        void submit(detail::work& w) { w.run(); }
        void execute(const std::function<void()>& f) { f(); }
    };
    {
        any_executor a = counted();
        EXPECT_EQ(alive, 1);
        any_executor b = a;
        EXPECT_EQ(a, b);
        a = nullptr;
        EXPECT_FALSE(a);
        EXPECT_EQ(alive, 1);
        int calls = 0;
        b.execute([&] { ++calls; });
        EXPECT_EQ(calls, 1);
        EXPECT_NE(b, any_executor(counted())); // a different executor
    }
    EXPECT_EQ(alive, 0);
    any_executor looper(std::in_place_type<looper_executor>);
    ASSERT_NE(looper.target<looper_executor>(), nullptr);
    EXPECT_EQ(any_executor(inline_executor()), any_executor(inline_executor()));
}

TEST(AnyExecutor, AnEmptyOneThrows) {
    const any_executor none;
    EXPECT_FALSE(none);
    EXPECT_EQ(none, any_executor());
    EXPECT_THROW(none.execute([] {}), std::logic_error);
    int destroyed = 0;
    EXPECT_THROW(none.execute([guard = coil_test::on_destruction(destroyed)] {}), std::logic_error);
    EXPECT_EQ(destroyed, 1);
    auto hop = [](any_executor ex) -> task<int> {
        try {
            co_await resume_on(ex);
        } catch (const std::logic_error&) {
            co_return 1;
        }
        co_return 0;
    };
    EXPECT_EQ(coil::run(hop(none)), 1);
    auto work = []() -> task<> { co_return; };
    auto send = [&](any_executor ex) -> task<int> {
        try {
            co_await on(ex, work());
        } catch (const std::logic_error&) {
            co_return 1;
        }
        co_return 0;
    };
    EXPECT_EQ(coil::run(send(none)), 1);
}

} // namespace
