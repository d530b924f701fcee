// async_task: results, callbacks, and where the coroutine runs.

#include "exec/support.hpp"

#include <coil/compose/shield.hpp>
#include <coil/core/async_generator.hpp>

#include <array>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

using namespace exec_test;

namespace {

std::thread::id async_here() { return std::this_thread::get_id(); }

struct async_no_default {
    explicit async_no_default(int n) : value(n) {}
    int value;
};

template <class T>
using async_by_hand = async_task<T, by_hand>;

async_by_hand<int> async_gives(executor_arg_t, by_hand&, int n) { co_return n; }
async_by_hand<void> async_nothing(executor_arg_t, by_hand&) { co_return; }
async_by_hand<int&> async_refers(executor_arg_t, by_hand&, int& n) { co_return n; }
async_by_hand<std::unique_ptr<int>> async_moves(executor_arg_t, by_hand&, int n) {
    co_return std::make_unique<int>(n);
}
async_by_hand<async_no_default> async_constructs(executor_arg_t, by_hand&, int n) {
    co_return async_no_default(n);
}
async_by_hand<std::string> async_text(executor_arg_t, by_hand&) { co_return "text"; }
template <class E>
async_by_hand<int> async_throws(executor_arg_t, by_hand&, E error) {
    throw error;
    co_return 0;
}

TEST(AsyncTask, StartsAtOnceOnItsExecutor) {
    by_hand ex;
    auto t = async_gives(executor_arg, ex, 3);
    EXPECT_FALSE(t.done());
    EXPECT_EQ(ex.size(), 1U); // without being awaited
    EXPECT_TRUE(ex.run_one());
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.get(), 3);
    EXPECT_EQ(t.get(), 3);
    EXPECT_EQ(std::move(t).get(), 3);
    // NOLINTNEXTLINE(bugprone-use-after-move): tested here
    EXPECT_THROW(t.get(), std::logic_error); // moved out
}

TEST(AsyncTask, ResultsOfAnyType) {
    by_hand ex;
    int n = 0;
    auto nothing = async_nothing(executor_arg, ex);
    auto refers = async_refers(executor_arg, ex, n);
    auto moves = async_moves(executor_arg, ex, 4);
    auto constructs = async_constructs(executor_arg, ex, 5);
    auto text = async_text(executor_arg, ex);
    EXPECT_EQ(ex.run_all(), 5);
    nothing.get();
    nothing.get();
    EXPECT_EQ(&refers.get(), &n);
    EXPECT_EQ(&refers.get(), &n);
    EXPECT_EQ(*moves.get(), 4);
    EXPECT_THROW(moves.get(), std::logic_error); // moved out by the first get()
    EXPECT_EQ(constructs.get().value, 5);
    EXPECT_EQ(text.get(), "text");
    EXPECT_EQ(std::move(text).get(), "text");
    EXPECT_THROW(text.get(), std::logic_error); // NOLINT(bugprone-use-after-move): as above
}

TEST(AsyncTask, G12_ExceptionsOfAnyType) {
    by_hand ex;
    auto number = async_throws(executor_arg, ex, 42);
    auto standard = async_throws(executor_arg, ex, std::runtime_error("standard"));
    ex.run_all();
    EXPECT_THROW(number.get(), int);
    EXPECT_THROW(number.get(), int); // each time
    EXPECT_THROW(standard.get(), std::runtime_error);
}

TEST(AsyncTask, G12_AnExceptionThatIsNotReceivedIsReported) {
    by_hand ex;
    testing::internal::CaptureStderr();
    {
        auto dropped = async_throws(executor_arg, ex, std::runtime_error("first"));
    }
    {
        auto dropped = async_throws(executor_arg, ex, std::runtime_error("second"));
    }
    ex.run_all();
    {
        auto kept = async_throws(executor_arg, ex, std::runtime_error("third"));
        kept.then([](int) { ADD_FAILURE(); }).finally([] {}).catching([](int) { ADD_FAILURE(); });
        ex.run_all();
    }
    {
        auto received = async_throws(executor_arg, ex, std::runtime_error("fourth"));
        received.catching([](std::exception_ptr) {});
        ex.run_all();
        auto got = async_throws(executor_arg, ex, std::runtime_error("fifth"));
        ex.run_all();
        EXPECT_THROW(got.get(), std::runtime_error);
    }
    const std::string said = testing::internal::GetCapturedStderr();
    for (const char* word : {"first", "second", "third"}) {
        EXPECT_NE(said.find(word), std::string::npos) << word;
    }
    for (const char* word : {"fourth", "fifth"}) {
        EXPECT_EQ(said.find(word), std::string::npos) << word;
    }
}

// ---- callbacks

TEST(AsyncTaskCallbacks, RunInTheirOrderOnTheExecutor) {
    looper_executor looper;
    std::vector<int> order;
    const auto add = [&](int n) {
        EXPECT_EQ(async_here(), looper.get_id());
        order.push_back(n);
    };
    std::binary_semaphore go_on{0};
    auto work = [](executor_arg_t, looper_executor&,
                   std::binary_semaphore& s) -> async_task<int, looper_executor> {
        s.acquire();
        co_return 1;
    };
    auto t = work(executor_arg, looper, go_on);
    t.then([&](int n) { add(n); })
        .finally([&] { add(2); })
        .catching([&](std::exception_ptr) { add(-1); })
        .then([&](const int& n) { add(n + 2); });
    go_on.release();
    EXPECT_EQ(t.get(), 1);
    EXPECT_EQ(order, (std::vector{1, 2, 3})); // before get() returns
    t.then([&](int) { order.push_back(4); }).finally([&, caller = async_here()] {
        EXPECT_EQ(async_here(), caller); // at once, on the caller's thread
        order.push_back(5);
    });
    EXPECT_EQ(order.size(), 5U);
}

TEST(AsyncTaskCallbacks, MayBeAttachedToATemporary) {
    by_hand ex;
    int sum = 0;
    async_gives(executor_arg, ex, 1).then([&](int n) { sum += n; });
    auto kept =
        async_gives(executor_arg, ex, 2).then([&](int n) { sum += n; }).finally([&] { sum += 10; });
    ex.run_all();
    EXPECT_EQ(sum, 13);
    EXPECT_EQ(kept.get(), 2);
}

TEST(AsyncTaskCallbacks, MayTakeTheResultByValueOrReference) {
    by_hand ex;
    auto moves = async_moves(executor_arg, ex, 4);
    int looked = 0;
    moves.then([&](const std::unique_ptr<int>& p) { looked = *p; });
    moves.then([&](std::unique_ptr<int> p) { looked += *p; });
    int n = 0;
    async_refers(executor_arg, ex, n).then([](int& m) { m = 7; });
    int calls = 0;
    async_nothing(executor_arg, ex).then([&] { ++calls; });
    ex.run_all();
    EXPECT_EQ(looked, 8);
    EXPECT_THROW(moves.get(), std::logic_error); // a callback has taken it
    EXPECT_EQ(n, 7);
    EXPECT_EQ(calls, 1);
}

TEST(AsyncTaskCallbacks, CatchingByType) {
    by_hand ex;
    std::vector<std::string> said;
    const auto add_all = [&](auto& t) {
        t.catching([&](std::exception_ptr e) { said.push_back(e ? "pointer" : "null"); })
            .catching([&](std::exception& e) { said.push_back(e.what()); })
            .catching([&](const std::logic_error&) { said.push_back("logic"); })
            .catching([&](int e) { said.push_back(std::to_string(e)); })
            .catching([&] { said.push_back("any"); })
            .catching([&](const std::exception& e) noexcept { said.push_back(e.what()); });
    };
    auto number = async_throws(executor_arg, ex, 42);
    add_all(number);
    auto standard = async_throws(executor_arg, ex, std::runtime_error("what"));
    add_all(standard);
    auto fine = async_gives(executor_arg, ex, 42);
    add_all(fine);
    ex.run_all();
    EXPECT_EQ(said,
              (std::vector<std::string>{"pointer", "42", "any", "pointer", "what", "any", "what"}));
}

TEST(AsyncTaskCallbacks, G12_TheOthersRunAfterOneThrows) {
    by_hand ex;
    testing::internal::CaptureStderr();
    int calls = 0;
    auto t = async_gives(executor_arg, ex, 1);
    t.then([](int) { throw std::runtime_error("a callback"); })
        .then([&](int) { ++calls; })
        .catching([](std::exception_ptr) { ADD_FAILURE() << "no failure of the task"; });
    ex.run_all();
    t.finally([] { throw std::runtime_error("a late one"); });
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(t.get(), 1);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("a callback"), std::string::npos);
    EXPECT_NE(said.find("a late one"), std::string::npos);
}

TEST(AsyncTaskCallbacks, MayDoAnythingWithTheTask) {
    by_hand ex;
    std::vector<int> order;
    auto t = std::make_unique<async_by_hand<int>>(async_gives(executor_arg, ex, 1));
    t->then([&](int) {
        order.push_back(t->get()); // the result is available
        t->finally([&] { order.push_back(3); });
        order.push_back(2);
    });
    t->finally([&] { t.reset(); });
    t->finally([&] { order.push_back(4); });
    ex.run_all();
    EXPECT_EQ(t, nullptr);
    EXPECT_EQ(order, (std::vector{1, 2, 4, 3}));
}

// ---- where it runs

template <class E>
async_task<std::thread::id, E> async_where(executor_arg_t, E&) {
    co_return async_here();
}

task<int> async_wanders(looper_executor& to, int n) {
    co_await resume_on(to);
    if (n < 0) {
        throw n;
    }
    co_return n;
}

/// Resumes its awaiter on a new thread.
struct async_foreign_await {
    std::thread& thread;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const {
        std::promise<void> assigned; // the coroutine uses `thread`: it must not resume before
        thread = std::thread([h, wait = assigned.get_future()] {
            wait.wait();
            detail::resume(h);
        });
        assigned.set_value();
    }
    [[nodiscard]] std::unique_ptr<int> await_resume() const { return std::make_unique<int>(6); }
};

template <class E>
async_task<int, E> async_travels(executor_arg_t, E& ex, looper_executor& away,
                                 std::function<bool()> is_home) {
    std::thread other;
    int away_from_home = 0;
    const auto look = [&] { away_from_home += is_home() ? 0 : 1; };
    look();
    EXPECT_EQ(co_await async_wanders(away, 2), 2);
    look();
    try {
        co_await async_wanders(away, -1);
        ADD_FAILURE();
    } catch (int) {
        look();
    }
    co_await resume_on(away); // and back
    look();
    EXPECT_EQ(*co_await async_foreign_await{other}, 6);
    look();
    EXPECT_EQ(co_await async_where(executor_arg, away), away.get_id());
    look();
    auto named = async_where(executor_arg, ex);
    co_await named;
    look();
    EXPECT_EQ(co_await on(away,
                          [](looper_executor& l) -> task<bool> {
                              co_return async_here() == l.get_id();
                          }(away)),
              true);
    look();
    const inplace_stop_token token = co_await this_task::stop_token();
    EXPECT_FALSE(token.stop_possible());
    co_await schedule(ex);
    look();
    other.join();
    co_return away_from_home;
}

TEST(AsyncTask, G1_ResumesOnItsExecutorAfterEveryAwait) {
    looper_executor away;
    looper_executor home;
    auto on_looper =
        async_travels(executor_arg, home, away, [&] { return async_here() == home.get_id(); });
    EXPECT_EQ(on_looper.get(), 0);
    io_context context;
    auto on_context = async_travels(executor_arg, context, away,
                                    [&] { return detail::current_loop == &context.loop(); });
    context.start();
    EXPECT_EQ(on_context.get(), 0);
    context.join();
    any_executor any = home;
    auto on_any =
        async_travels(executor_arg, any, away, [&] { return async_here() == home.get_id(); });
    EXPECT_EQ(on_any.get(), 0);
    async_executor threads;
    auto on_threads =
        async_travels(executor_arg, threads, away, [&] { return async_here() != away.get_id(); });
    EXPECT_EQ(on_threads.get(), 0);
}

/// Lives until the program ends, so that the test that creates it does not leak it.
class async_default_context : public ::testing::Environment {
    void SetUp() override { default_executor<io_context>(); }
};
[[maybe_unused]] const auto* const async_environment =
    ::testing::AddGlobalTestEnvironment(new async_default_context);

/// A task that leaves a context is no longer in the context's list, even if a shielded task or a
/// generator made the move.
TEST(AsyncTask, G1_AContextForgetsATaskThatLeavesIt) {
    auto hops = [](io_context& to) -> task<int> {
        co_await resume_on(to);
        co_return 1;
    };
    auto yields = [](io_context& to) -> async_generator<int> {
        co_await resume_on(to);
        co_yield 1;
    };
    auto work = [&](executor_arg_t, by_hand&, io_context& to, bool shielded) -> async_by_hand<int> {
        if (shielded) {
            co_return co_await shield(hops(to));
        }
        auto numbers = yields(to);
        co_return (co_await numbers.next()).value();
    };
    for (const bool shielded : {true, false}) {
        by_hand ex;
        io_context context;
        auto t = work(executor_arg, ex, context, shielded);
        std::thread([&] { ex.run_all(); }).join();
        auto looks = [&]() -> task<> {
            while (ex.size() == 0) {
                co_await yield();
            }
            EXPECT_EQ(context.load(), 1U); // only the task that calls load()
        };
        context.co_spawn(looks());
        context.run();
        EXPECT_EQ(ex.run_all(), 1);
        EXPECT_EQ(t.get(), 1);
    }
}

TEST(AsyncTask, AContextAsExecutorHasItsOperations) {
    auto work = []() -> async_task<int, io_context> {
        EXPECT_EQ(co_await io::nop(), 0);
        EXPECT_EQ(co_await sleep_for(1ms), 0);
        mutex m;
        const auto guard = co_await m.lock_guard();
        co_return 8;
    };
    EXPECT_EQ(work().get(), 8); // the default context has a thread
    io_context context;
    auto there = [](executor_arg_t, io_context& c) -> async_task<bool, io_context> {
        co_await yield();
        co_return &this_context() == &c;
    };
    auto t = there(executor_arg, context);
    context.run(); // returns when the task is done, as the task belongs to this context
    EXPECT_TRUE(t.done());
    EXPECT_TRUE(t.get());
    runtime rt(2);
    auto anywhere = [](executor_arg_t, runtime& all) -> async_task<bool, runtime> {
        co_await sleep_for(1ms);
        co_return this_context().loop().owning_runtime() == &all;
    };
    auto u = anywhere(executor_arg, rt);
    rt.run();
    EXPECT_TRUE(u.get());
}

TEST(AsyncTask, InlineRunsOnItsCaller) {
    auto at_once = []() -> async_task<std::thread::id, inline_executor> { co_return async_here(); };
    auto t = at_once();
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.get(), async_here());
    looper_executor looper;
    auto waits = [](looper_executor& l) -> async_task<std::thread::id, inline_executor> {
        co_await async_where(executor_arg, l);
        co_return async_here();
    };
    held hold(looper);
    auto u = waits(looper);
    hold.let_go();
    EXPECT_EQ(u.get(), looper.get_id());
}

TEST(AsyncTask, AnAwaiterResumesOnItsOwnContextOrExecutor) {
    looper_executor looper;
    async_executor threads;
    auto main = [&]() -> task<> {
        const auto home = async_here();
        EXPECT_EQ(co_await async_where(executor_arg, looper), looper.get_id());
        EXPECT_EQ(async_here(), home);
        auto named = async_where(executor_arg, threads);
        EXPECT_NE(co_await named, home);
        EXPECT_NE(co_await named, home); // again
        EXPECT_EQ(async_here(), home);
        auto [a, b] = co_await when_all(async_where(executor_arg, looper), named);
        EXPECT_EQ(a, looper.get_id());
        EXPECT_EQ(async_here(), home);
        EXPECT_EQ(co_await io::nop(), 0);
    };
    coil::run(main());
    // A coroutine without a context or executor resumes where the task ends.
    std::binary_semaphore done{0};
    auto without_context = [](looper_executor& l, std::binary_semaphore& s) -> coil_test::manual {
        const auto where = co_await async_where(executor_arg, l);
        EXPECT_EQ(where, async_here());
        s.release();
    };
    held hold(looper);
    auto m = without_context(looper, done);
    m.start();
    hold.let_go();
    done.acquire();
    looper.shutdown();
    looper.join();
}

struct async_member {
    int value = 9;
    async_task<int, looper_executor> get(executor_arg_t, looper_executor& l) {
        EXPECT_EQ(async_here(), l.get_id());
        co_return value;
    }
};

TEST(AsyncTask, TheExecutorOfMembersAndLambdas) {
    looper_executor looper;
    async_member m;
    EXPECT_EQ(m.get(executor_arg, looper).get(), 9);
    auto lambda = [](executor_arg_t, looper_executor&,
                     int) -> async_task<std::thread::id, looper_executor> {
        co_return async_here();
    };
    EXPECT_EQ(lambda(executor_arg, looper, 1).get(), looper.get_id());
    EXPECT_NE(default_executor<looper_executor>().get_id(), looper.get_id());
    EXPECT_EQ(&default_executor<looper_executor>(), &default_executor<looper_executor>());
}

TEST(AsyncTask, AnAnyExecutorIsKeptByItsTasks) {
    auto work = [](executor_arg_t, any_executor ex) -> async_task<bool, any_executor> {
        co_await schedule(ex);
        co_return current_executor_is(ex);
    };
    any_executor own(std::in_place_type<looper_executor>);
    auto t = work(executor_arg, std::move(own));
    EXPECT_TRUE(t.get());
    auto empty = []() -> async_task<int, any_executor> { co_return 1; };
    EXPECT_THROW(empty().get(), std::logic_error); // there is no default any_executor
}

TEST(AsyncTask, AForeignExecutor) {
    foreign_executor ex;
    auto work = [](executor_arg_t, foreign_executor& e,
                   looper_executor& l) -> async_task<int, foreign_executor> {
        co_await async_where(executor_arg, l);
        co_await schedule(e);
        co_return 3;
    };
    looper_executor looper;
    held hold(looper); // the queue of `ex` has no lock
    auto t = work(executor_arg, ex, looper);
    ex.run_all();
    hold.let_go();
    looper.shutdown();
    looper.join();
    ex.run_all();
    EXPECT_EQ(t.get(), 3);
    auto u = work(executor_arg, ex, looper);
    ex.queue.clear();
    EXPECT_TRUE(throws_cancelled([&] { u.get(); }));
}

// ---- ends

TEST(AsyncTaskEnd, DroppingItDetachesIt) {
    by_hand ex;
    int destroyed = 0;
    int called = 0;
    auto work = [](executor_arg_t, by_hand& e, int& count) -> async_by_hand<void> {
        const coil_test::on_destruction guard(count);
        co_await schedule(e);
    };
    work(executor_arg, ex, destroyed).finally([&] { ++called; });
    EXPECT_TRUE(ex.run_one());
    EXPECT_EQ(destroyed, 0);
    ex.run_all();
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(called, 1);
}

TEST(AsyncTaskEnd, G5_TheFrameIsDestroyedWhenTheCoroutineEnds) {
    by_hand ex;
    int destroyed = 0;
    auto work = [](executor_arg_t, by_hand&, coil_test::on_destruction) -> async_by_hand<int> {
        co_return 1;
    };
    auto t = work(executor_arg, ex, coil_test::on_destruction(destroyed));
    ex.run_all();
    EXPECT_EQ(destroyed, 1); // when the coroutine ends, not with the task object
    EXPECT_EQ(t.get(), 1);
}

TEST(AsyncTaskEnd, G5_AnExecutorThatDropsIt) {
    std::array<int, 3> destroyed{};
    std::vector<std::string> said;
    looper_executor other;
    by_hand ex;
    auto work = [](executor_arg_t, by_hand& e, int& count, int how,
                   looper_executor& l) -> async_by_hand<int> {
        const coil_test::on_destruction guard(count);
        if (how == 1) {
            co_await schedule(e);
        } else if (how == 2) {
            co_await async_where(executor_arg, l);
        }
        ADD_FAILURE() << "the coroutine was resumed";
        co_return 0;
    };
    for (int how = 0; how < 3; ++how) {
        auto t = work(executor_arg, ex, destroyed[static_cast<std::size_t>(how)], how, other);
        t.catching([&](std::exception& e) { said.push_back(e.what()); });
        auto waits = [](async_by_hand<int>& a) -> task<bool> {
            try {
                co_await a;
            } catch (const std::system_error& e) {
                co_return e.code() == std::errc::operation_canceled;
            }
            co_return false;
        };
        io_context context;
        auto waiter = context.spawn(waits(t));
        auto drops = [&]() -> task<> {
            std::thread([&] { // runs no context
                held hold(other);
                if (how > 0) {
                    ex.run_one();
                }
                hold.let_go();
                if (how == 2) {
                    other.shutdown();
                    other.join(); // its last work has notified the awaiter
                }
                ex.drop_all();
            })
                .join();
            co_return;
        };
        context.co_spawn(drops());
        context.run();
        EXPECT_TRUE(waiter.get());
        EXPECT_TRUE(throws_cancelled([&] { t.get(); })) << how;
        EXPECT_EQ(destroyed[static_cast<std::size_t>(how)], how > 0 ? 1 : 0);
    }
    EXPECT_EQ(said.size(), 3U);
}

TEST(AsyncTaskEnd, G5_AnExecutorThatRefusesIt) {
    looper_executor looper;
    looper.shutdown();
    auto t = async_where(executor_arg, looper);
    EXPECT_TRUE(t.done());
    EXPECT_TRUE(throws_cancelled([&] { t.get(); }));
    struct refusing {
        void submit(detail::work&) { throw std::runtime_error("no thread"); }
        void execute(const std::function<void()>&) {}
    } ex;
    int destroyed = 0;
    auto work = [](executor_arg_t, refusing&,
                   coil_test::on_destruction) -> async_task<int, refusing> { co_return 1; };
    auto u = work(executor_arg, ex, coil_test::on_destruction(destroyed));
    EXPECT_EQ(destroyed, 1);
    EXPECT_THROW(u.get(), std::runtime_error);
}

TEST(AsyncTaskEnd, G5_AContextThatStops) {
    int destroyed = 0;
    auto work = [](executor_arg_t, io_context&, int& count) -> async_task<int, io_context> {
        const coil_test::on_destruction guard(count);
        co_await sleep_for(1h);
        co_return 1;
    };
    io_context context;
    auto t = work(executor_arg, context, destroyed);
    context.co_spawn([]() -> task<> {
        co_await sleep_for(1ms);
        this_context().stop();
    }());
    context.run();
    EXPECT_EQ(destroyed, 1);
    EXPECT_TRUE(throws_cancelled([&] { t.get(); }));
    auto gone = std::make_unique<io_context>();
    auto u = work(executor_arg, *gone, destroyed);
    gone.reset();
    EXPECT_TRUE(throws_cancelled([&] { u.get(); })) << "it was not started";
    // A task that runs on its caller's thread belongs to the caller's context.
    auto at_once = [](int& count) -> async_task<int, inline_executor> {
        const coil_test::on_destruction guard(count);
        co_await sleep_for(1h);
        co_return 1;
    };
    auto main = [&]() -> task<> {
        auto v = at_once(destroyed);
        EXPECT_FALSE(v.done());
        this_context().stop();
        co_return;
    };
    io_context again;
    again.co_spawn(main());
    again.run();
    EXPECT_EQ(destroyed, 2);
}

TEST(AsyncTaskEnd, G5_AnAwaiterIsDestroyed) {
    by_hand ex;
    auto t = async_gives(executor_arg, ex, 1);
    for (int i = 0; i < 3; ++i) {
        int destroyed = 0;
        io_context context;
        auto waits = [&]() -> task<> {
            const coil_test::on_destruction guard(destroyed);
            co_await t;
            ADD_FAILURE();
        };
        auto stops = []() -> task<> {
            this_context().stop();
            co_return;
        };
        context.co_spawn(waits());
        context.co_spawn(waits());
        context.co_spawn(stops());
        context.run();
        EXPECT_EQ(destroyed, 2);
    }
    ex.run_all();
    EXPECT_EQ(t.get(), 1);
}

/// A context stops while the task that its coroutines await is ending.
TEST(AsyncTaskEnd, G5_StoppedAtAnyMoment) {
    looper_executor looper;
    for (int i = 0; i < coil_test::rounds(coil_test::sanitized ? 50 : 300, 8'000); ++i) {
        std::atomic<int> spin{0};
        int destroyed = 0;
        io_context context;
        auto ends = [](executor_arg_t, looper_executor&, std::atomic<int>& s,
                       int n) -> async_task<int, looper_executor> {
            while (s < n) {
                ++s;
            }
            co_return 1;
        };
        auto t = ends(executor_arg, looper, spin, i * 20);
        auto waits = [&]() -> task<> {
            const coil_test::on_destruction guard(destroyed);
            co_await t;
        };
        auto stops = []() -> task<> {
            co_await yield();
            this_context().stop();
        };
        for (int k = 0; k < 4; ++k) {
            context.co_spawn(waits());
        }
        context.co_spawn(stops());
        context.run();
        EXPECT_EQ(destroyed, 4);
        EXPECT_EQ(t.get(), 1);
    }
}

TEST(AsyncTaskEnd, GetDoesNotBlockAContext) {
    by_hand ex;
    auto t = async_gives(executor_arg, ex, 1);
    auto main = [&]() -> task<bool> {
        try {
            t.get();
        } catch (const std::system_error& e) {
            co_return e.code() == std::errc::resource_deadlock_would_occur;
        }
        co_return false;
    };
    EXPECT_TRUE(coil::run(main()));
    ex.run_all();
    auto done = [&]() -> task<int> { co_return t.get(); };
    EXPECT_EQ(coil::run(done()), 1);
}

// ---- many

TEST(AsyncTask, AThousandRunConcurrently) {
    const int many = coil_test::sanitized ? 200 : 1000;
    std::atomic<int> inside{0};
    auto waits_for_all = [](std::atomic<int>& count, int all) -> async_task<int, async_executor> {
        ++count;
        while (count < all) { // all of them must have started before any ends
            std::this_thread::yield();
        }
        co_return 1;
    };
    std::vector<async_task<int, async_executor>> all;
    for (int i = 0; i < many; ++i) {
        all.push_back(waits_for_all(inside, many));
    }
    int sum = 0;
    for (auto& t : all) {
        sum += t.get();
    }
    EXPECT_EQ(sum, many);
}

TEST(AsyncTask, G9_CallbacksAndWaitersWhileItEnds) {
    looper_executor a;
    looper_executor b;
    const int rounds = coil_test::rounds(coil_test::sanitized ? 200 : 1000, 50'000);
    std::atomic<int> calls{0};
    int sum = 0;
    auto waits = [](executor_arg_t, looper_executor&,
                    async_task<int, looper_executor>& t) -> async_task<int, looper_executor> {
        co_return co_await t;
    };
    auto gives = [](executor_arg_t, looper_executor&) -> async_task<int, looper_executor> {
        co_return 1;
    };
    for (int i = 0; i < rounds; ++i) {
        auto t = gives(executor_arg, a);
        auto u = waits(executor_arg, b, t);
        t.then([&](int n) { calls += n; });
        t.finally([&] { ++calls; });
        sum += u.get() + t.get();
    }
    EXPECT_EQ(sum, 2 * rounds);
    EXPECT_EQ(calls, 2 * rounds);
}

TEST(AsyncTask, G10_AwaitsThatCompleteAtOnceDoNotGrowTheStack) {
    const int many = coil_test::sanitized ? 20'000 : 200'000;
    auto child = []() -> task<int> { co_return 1; };
    auto ready = []() -> async_task<int, inline_executor> { co_return 1; };
    auto work = [&](executor_arg_t, looper_executor&) -> async_task<int, looper_executor> {
        int sum = 0;
        for (int i = 0; i < many; ++i) {
            sum += co_await child();
            sum += co_await ready();
        }
        co_return sum;
    };
    looper_executor looper;
    EXPECT_EQ(work(executor_arg, looper).get(), 2 * many);
}

TEST(AsyncTaskDeathTest, UsingAMovedOneEndsTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto work = []() -> async_task<int, inline_executor> { co_return 1; };
    auto first = work();
    const auto second = std::move(first);
    const char* const message = "coil: an async_task that was moved from is used";
    // NOLINTBEGIN(bugprone-use-after-move)
    EXPECT_DEATH(static_cast<void>(first.done()), message);
    EXPECT_DEATH(first.then([](int) {}), message);
    EXPECT_DEATH(static_cast<void>(first.operator co_await()), message);
    // NOLINTEND(bugprone-use-after-move)
}

} // namespace
