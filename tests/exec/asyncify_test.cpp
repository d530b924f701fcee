#include "races.hpp"
#include "support/run.hpp"

#include <coil/exec/asyncify.hpp>
#include <coil/exec/blocking.hpp>
#include <coil/exec/blocking_pool.hpp>
#include <coil/exec/schedule.hpp>

#include <atomic>
#include <coroutine>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coil;
using namespace std::chrono_literals;

/// An executor that runs its queue when the test says so.
class asyncify_queue {
public:
    void submit(detail::work& w) {
        const std::scoped_lock lock(mutex_);
        if (refuses) {
            throw std::length_error("full");
        }
        queue_.push_back(&w);
    }
    template <class F>
    void execute(F&& f) {
        detail::execute_as_work(*this, std::forward<F>(f));
    }
    std::size_t size() {
        const std::scoped_lock lock(mutex_);
        return queue_.size();
    }
    void run_one() { take().run(); }
    void drop_one() { take().drop(); }

    bool refuses = false;

private:
    detail::work& take() {
        const std::scoped_lock lock(mutex_);
        detail::work& w = *queue_.front();
        queue_.pop_front();
        return w;
    }

    std::mutex mutex_;
    std::deque<detail::work*> queue_;
};

/// An executor written without knowledge of coil.
struct asyncify_std_function_executor {
    void execute(std::function<void()> f) { kept.push_back(std::move(f)); }
    std::vector<std::function<void()>> kept;
};

struct asyncify_inline {
    template <class F>
    void execute(F&& f) {
        std::forward<F>(f)();
    }
};

struct asyncify_new_thread {
    template <class F>
    void execute(F&& f) {
        std::thread(std::forward<F>(f)).detach();
    }
};

static_assert(executor<asyncify_queue> && executor<asyncify_std_function_executor> &&
              executor<asyncify_inline> && executor<blocking_pool>);

TEST(Asyncify, RunsAfterAllReadyCoroutines) {
    std::vector<std::string> order;
    const auto home = std::this_thread::get_id();
    io_context ctx;
    ctx.co_spawn([](std::vector<std::string>& o, std::thread::id here) -> task<> {
        o.push_back("before");
        const int n = co_await asyncify([&] {
            EXPECT_EQ(std::this_thread::get_id(), here);
            o.push_back("function");
            return 1;
        });
        EXPECT_EQ(n, 1);
        EXPECT_EQ(std::this_thread::get_id(), here);
        o.push_back("after");
    }(order, home));
    for (const char* other : {"b", "c"}) {
        ctx.co_spawn([](std::vector<std::string>& o, const char* name) -> task<> {
            o.push_back(name);
            co_await yield();
            o.push_back(name);
        }(order, other));
    }
    ctx.run();
    // Called in a later iteration: after coroutines that were resumed twice in this one.
    EXPECT_EQ(order, (std::vector<std::string>{"before", "b", "c", "b", "c", "function", "after"}));
}

/// Two coroutines start, and each runs to its first await; then the loop calls their functions in
/// the order in which they were requested.
TEST(Asyncify, G7_FunctionsAreCalledInRequestOrder) {
    std::vector<std::string> said;
    io_context ctx;
    const auto step = [&said](const char* name) {
        return asyncify([&said, name] {
            said.push_back(name);
            return true;
        });
    };
    ctx.co_spawn([](auto make, std::vector<std::string>& s) -> task<> {
        s.push_back("before create");
        EXPECT_TRUE(co_await make("create"));
        s.push_back("after create");
        EXPECT_TRUE(co_await make("exists"));
        s.push_back("after exists");
    }(step, said));
    ctx.co_spawn([](std::vector<std::string>& s) -> task<> {
        co_await asyncify([&s] { s.push_back("hello"); });
    }(said));
    ctx.run();
    EXPECT_EQ(said, (std::vector<std::string>{"before create", "create", "after create", "hello",
                                              "exists", "after exists"}));
}

/// A long computation in pieces does not delay timers.
TEST(Asyncify, G7_PiecesDoNotDelayTimers) {
    coil::run([]() -> task<> {
        int ticks = 0;
        bool done = false;
        join_handle<> ticker = spawn([](int& n, bool& end) -> task<> {
            while (!end) {
                co_await sleep_for(200us);
                ++n;
            }
        }(ticks, done));
        for (int i = 0; i < 20; ++i) {
            co_await asyncify([] {
                const auto end = std::chrono::steady_clock::now() + 300us;
                while (std::chrono::steady_clock::now() < end) {
                }
            });
        }
        done = true;
        EXPECT_GE(ticks, 5);
        co_await ticker;
    }());
}

struct asyncify_immovable {
    explicit asyncify_immovable(int n) : value(n) {}
    asyncify_immovable(asyncify_immovable&&) = delete;
    int value;
};

int asyncify_plain_function() { return 3; }

TEST(Asyncify, AnyCallableAndAnyResult) {
    coil::run([]() -> task<> {
        EXPECT_EQ(co_await asyncify(asyncify_plain_function), 3);
        EXPECT_EQ(
            *co_await asyncify([n = std::make_unique<int>(4)]() mutable { return std::move(n); }),
            4);
        int there = 5;
        int& same = co_await asyncify([&]() -> int& { return there; });
        EXPECT_EQ(&same, &there);
        const asyncify_immovable built = co_await asyncify([] { return asyncify_immovable(6); });
        EXPECT_EQ(built.value, 6);
        co_await asyncify([] {});
        const inplace_stop_token mine = co_await this_task::stop_token();
        EXPECT_EQ(co_await asyncify([](inplace_stop_token given) { return given; }), mine);
        try {
            co_await asyncify([] { throw 7; });
            ADD_FAILURE();
        } catch (int n) {
            EXPECT_EQ(n, 7);
        }
    }());
}

TEST(Asyncify, G3_AStopBeforeTheCallCancelsIt) {
    inplace_stop_source stop;
    bool cancelled = false;
    io_context ctx;
    ctx.co_spawn(
        [](bool& c) -> task<> {
            try {
                co_await asyncify([] { ADD_FAILURE(); });
            } catch (const std::system_error& e) {
                c = e.code() == std::errc::operation_canceled;
            }
        }(cancelled),
        stop.get_token());
    ctx.co_spawn([](inplace_stop_source& s) -> task<> {
        s.request_stop();
        co_return;
    }(stop));
    ctx.run();
    EXPECT_TRUE(cancelled);
}

TEST(Asyncify, G5_DestroyedBeforeTheCall) {
    int destroyed = 0;
    io_context ctx;
    const auto waits = [](int& d) -> task<> {
        const coil_test::on_destruction local(d);
        co_await asyncify([] { ADD_FAILURE(); });
    };
    ctx.co_spawn(waits(destroyed));
    ctx.post([&] { ctx.stop(); });
    ctx.run();
    EXPECT_EQ(destroyed, 1);

    ctx.post([&] { // explicit steps: in the inbox, then in the ready queue
        const auto by_hand = [](int& d) -> coil_test::manual {
            const coil_test::on_destruction local(d);
            co_await asyncify([] { ADD_FAILURE(); });
        };
        auto first = by_hand(destroyed);
        auto second = by_hand(destroyed);
        first.start();
        second.start();
        first.destroy();
        second.destroy();
    });
    ctx.run();
    EXPECT_EQ(destroyed, 3);
}

TEST(AsyncifyOn, G1_RunsThereAndComesBack) {
    blocking_pool pool(1);
    coil::run([](blocking_pool& p) -> task<> {
        const auto home = std::this_thread::get_id();
        const auto there = co_await asyncify([] { return std::this_thread::get_id(); }, p);
        EXPECT_NE(there, home);
        EXPECT_EQ(std::this_thread::get_id(), home);
        asyncify_new_thread threads;
        EXPECT_NE(co_await asyncify([] { return std::this_thread::get_id(); }, threads), home);
        EXPECT_EQ(std::this_thread::get_id(), home);
        // A temporary executor is kept alive.
        EXPECT_EQ(co_await asyncify([] { return std::this_thread::get_id(); }, asyncify_inline()),
                  home);
    }(pool));
}

TEST(AsyncifyOn, G12_AnyCallableAndAnyResult) {
    blocking_pool pool(2);
    coil::run([](blocking_pool& p) -> task<> {
        EXPECT_EQ(co_await asyncify(asyncify_plain_function, p), 3);
        EXPECT_EQ(*co_await asyncify(
                      [n = std::make_unique<int>(4)]() mutable { return std::move(n); }, p),
                  4);
        int there = 5;
        int& same = co_await asyncify([&]() -> int& { return there; }, p);
        EXPECT_EQ(&same, &there);
        co_await asyncify([] {}, p);
        try {
            co_await asyncify([] { throw std::string("there"); }, p);
            ADD_FAILURE();
        } catch (const std::string& s) {
            EXPECT_EQ(s, "there");
        }
    }(pool));
}

TEST(AsyncifyOn, DroppedByTheExecutor) {
    asyncify_queue queue;
    io_context ctx;
    int cancelled = 0;
    const auto waits = [](auto& ex, int& c) -> task<> {
        try {
            co_await asyncify([] { ADD_FAILURE(); }, ex);
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
            EXPECT_EQ(std::string(e.what()).find("coil: asyncify: the executor was shut down"), 0U);
            ++c;
        }
    };
    ctx.co_spawn(waits(queue, cancelled));
    ctx.post([&] { queue.drop_one(); });
    ctx.run();
    EXPECT_EQ(cancelled, 1);

    asyncify_std_function_executor other;
    ctx.co_spawn(waits(other, cancelled));
    ctx.post([&] { other.kept.clear(); });
    ctx.run();
    EXPECT_EQ(cancelled, 2);
}

TEST(AsyncifyOn, AnExecutorThatRefuses) {
    asyncify_queue queue;
    queue.refuses = true;
    coil::run([](asyncify_queue& q) -> task<> {
        try {
            co_await asyncify([] { ADD_FAILURE(); }, q);
            ADD_FAILURE();
        } catch (const std::length_error& e) {
            EXPECT_STREQ(e.what(), "full");
        }
    }(queue));
}

TEST(AsyncifyOn, G3_AStopWithdrawsQueuedFunctions) {
    asyncify_queue queue;
    inplace_stop_source stop;
    io_context ctx;
    bool cancelled = false;
    ctx.co_spawn(
        [](asyncify_queue& q, bool& c) -> task<> {
            try {
                co_await asyncify([] { ADD_FAILURE(); }, q);
            } catch (const std::system_error& e) {
                c = e.code() == std::errc::operation_canceled;
            }
        }(queue, cancelled),
        stop.get_token());
    ctx.post([&] { stop.request_stop(); });
    ctx.run(); // returns immediately, whatever the executor does
    EXPECT_TRUE(cancelled);
    ASSERT_EQ(queue.size(), 1U);
    queue.run_one();
}

TEST(AsyncifyOn, G5_AShutdownWithdrawsQueuedFunctions) {
    asyncify_queue queue;
    int destroyed = 0;
    {
        io_context ctx;
        for (int i = 0; i < 2; ++i) {
            ctx.co_spawn([](asyncify_queue& q, int& d) -> task<> {
                const coil_test::on_destruction local(d);
                co_await asyncify([] { ADD_FAILURE(); }, q);
            }(queue, destroyed));
        }
        ctx.post([&] { ctx.stop(); });
        ctx.run();
        EXPECT_EQ(destroyed, 2);
    }
    queue.run_one();
    queue.drop_one();
}

TEST(AsyncifyOn, G5_AShutdownWaitsForRunningFunctions) {
    asyncify_new_thread threads;
    std::binary_semaphore entered(0);
    std::binary_semaphore stopped(0);
    std::atomic<bool> ended = false;
    int destroyed = 0;
    io_context ctx;
    ctx.co_spawn([](asyncify_new_thread& ex, std::binary_semaphore& in, std::binary_semaphore& stop,
                    std::atomic<bool>& end, int& d) -> task<> {
        const coil_test::on_destruction local(d);
        co_await asyncify(
            [&] {
                in.release();
                stop.acquire();
                std::this_thread::sleep_for(5ms);
                EXPECT_EQ(d, 0);
                end = true;
            },
            ex);
        ADD_FAILURE();
    }(threads, entered, stopped, ended, destroyed));
    std::thread stopper([&] {
        entered.acquire();
        ctx.stop();
        stopped.release();
    });
    ctx.run();
    stopper.join();
    EXPECT_TRUE(ended);
    EXPECT_EQ(destroyed, 1);
}

/// An executor that runs functions inline does not grow the stack.
TEST(AsyncifyOn, G10_InlineExecutorsDoNotGrowTheStack) {
    const int count = coil_test::rounds(100'000, 10'000'000);
    const auto counts = [](int n, int& c) -> coil_test::manual {
        asyncify_inline at_once;
        for (int i = 0; i < n; ++i) {
            co_await asyncify([&] { ++c; }, at_once);
        }
    };
    int calls = 0;
    auto nowhere = counts(count, calls);
    nowhere.start();
    EXPECT_TRUE(nowhere.done());
    EXPECT_EQ(calls, count);
    io_context ctx;
    auto in_context = counts(count, calls);
    ctx.post([&] { in_context.start(); });
    ctx.run();
    EXPECT_TRUE(in_context.done());
    EXPECT_EQ(calls, 2 * count);
}

/// Executor threads race with stops and shutdowns.
TEST(AsyncifyOn, G1_G3_StopsThatRace) {
    coil_test::racing_stops race(coil_test::rounds(coil_test::sanitized ? 200 : 1000, 20'000));
    asyncify_queue queue;
    std::atomic<bool> over = false;
    std::thread thread([&] {
        while (!over || queue.size() > 0) {
            if (queue.size() > 0) {
                queue.run_one();
            }
        }
    });
    for (int round = 0; round < 4; ++round) {
        race.round([&queue](auto f) { return asyncify(f, queue); });
    }
    over = true;
    thread.join();
    race.check();
}

/// A task of a context has moved to an executor. When the task's wait ends, the context's thread
/// drops the task from the executor's queue. The context adopts the task: runs it, waits for it and
/// destroys it. `waits` receives a semaphore that is released when the task waits.
void is_dropped_by_a_context(const std::function<task<>(std::binary_semaphore&)>& waits,
                             bool shutdown) {
    int destroyed = 0;
    bool went_on = false;
    asyncify_queue there;
    std::binary_semaphore it_waits(0);
    {
        io_context ctx;
        ctx.co_spawn([](asyncify_queue& ex, std::binary_semaphore& s,
                        const std::function<task<>(std::binary_semaphore&)>& w, int& d, bool& on,
                        bool ends) -> task<> {
            const coil_test::on_destruction local(d);
            co_await resume_on(ex);
            co_await w(s);
            co_await sleep_for(ends ? 1h : 1ms);
            on = true;
        }(there, it_waits, waits, destroyed, went_on, shutdown));
        ctx.co_spawn(
            [](io_context& c, asyncify_queue& ex, std::binary_semaphore& s, bool ends) -> task<> {
                std::thread([&] { ex.run_one(); }).join(); // until the task waits
                s.release();
                while (ex.size() == 0) { // until that wait ends
                    std::this_thread::sleep_for(50us);
                }
                ex.drop_one();
                if (ends) {
                    co_await sleep_for(1ms);
                    c.stop();
                }
            }(ctx, there, it_waits, shutdown));
        ctx.run();
    }
    EXPECT_EQ(went_on, !shutdown);
    EXPECT_EQ(destroyed, 1);
}

TEST(Asyncify, G1_G5_AContextAdoptsATaskOfAnExecutorItShutsDown) {
    for (const bool shutdown : {false, true}) {
        is_dropped_by_a_context(
            [](std::binary_semaphore& s) -> task<> { co_await blocking([&] { s.acquire(); }); },
            shutdown);
        is_dropped_by_a_context(
            [](std::binary_semaphore&) -> task<> {
                bool canceled = false;
                try {
                    co_await asyncify([] {});
                } catch (const std::system_error& e) {
                    canceled = e.code() == std::errc::operation_canceled;
                }
                EXPECT_TRUE(canceled);
            },
            shutdown);
    }
}

/// A coroutine cannot be removed from an executor's queue, so destroying it there is misuse.
TEST(AsyncifyDeathTest, G1_ACoroutineThatAnExecutorHasCannotBeDestroyed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    struct by_hand {
        struct promise_type {
            by_hand get_return_object() {
                return {std::coroutine_handle<promise_type>::from_promise(*this)};
            }
            std::suspend_never initial_suspend() noexcept { return {}; }
            std::suspend_always final_suspend() noexcept { return {}; }
            void return_void() noexcept {}
            void unhandled_exception() noexcept { std::terminate(); }
        };
        std::coroutine_handle<promise_type> handle;
    };
    asyncify_queue there;
    const by_hand coroutine = [](asyncify_queue& ex) -> by_hand {
        co_await resume_on(ex);
        co_await asyncify([] {});
    }(there);
    there.run_one();
    ASSERT_EQ(there.size(), 1U);
    EXPECT_DEATH(coroutine.handle.destroy(), "coil: a coroutine is destroyed while the executor");
    there.run_one();
    coroutine.handle.destroy();
}

} // namespace
