// as_awaitable, as_sender and scheduler, with senders that have member functions (C++26) and with
// senders that have tag_invoke.

#include "interop/mini_senders.hpp"
#include "support/run.hpp"

#include <coil/execution.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

namespace {

using namespace coil;
using namespace std::chrono_literals;
using mini::make_sender;

template <class V>
class Senders : public testing::Test {};
using vocabularies = testing::Types<member_vocabulary, tagged::vocabulary>;
TYPED_TEST_SUITE(Senders, vocabularies);

template <class V>
using set_value = typename V::set_value_t;

/// A sender that completes on another thread.
template <class V, class... Ts>
auto on_thread(std::vector<std::jthread>& threads, Ts... values) {
    return make_sender<V, set_value<V>(Ts...)>([&threads, values...](auto& receiver) {
        threads.emplace_back([&receiver, values...] {
            std::this_thread::sleep_for(1ms);
            set_value<V>{}(std::move(receiver), values...);
        });
    });
}

/// A sender that completes only when it is asked to stop, on the thread that asks.
template <class V>
auto until_stopped() {
    using token = inplace_stop_token;
    struct state {
        std::optional<inplace_stop_callback<std::function<void()>>> callback;
    };
    return make_sender<V, typename V::set_value_t(int), typename V::set_stopped_t()>(
        [s = std::make_shared<state>()](auto& receiver) {
            const token t = mini::token_of<V>(receiver);
            s->callback.emplace(t, std::function<void()>([&receiver] {
                                    typename V::set_stopped_t{}(std::move(receiver));
                                }));
        });
}

TYPED_TEST(Senders, AreAwaitedForNothingOneValueSeveralAndAlternatives) {
    using V = TypeParam;
    const auto work = []() -> task<> {
        co_await as_awaitable(
            make_sender<V, set_value<V>()>([](auto& r) { set_value<V>{}(std::move(r)); }));
        const auto owned = co_await as_awaitable(make_sender<V, set_value<V>(std::unique_ptr<int>)>(
            [](auto& r) { set_value<V>{}(std::move(r), std::make_unique<int>(1)); }));
        EXPECT_EQ(*owned, 1);
        const auto [two, three] =
            co_await as_awaitable(make_sender<V, set_value<V>(int, std::string)>(
                [](auto& r) { set_value<V>{}(std::move(r), 2, std::string("3")); }));
        EXPECT_EQ(two, 2);
        EXPECT_EQ(three, "3");
        const std::variant<std::tuple<int>, std::tuple<>> either =
            co_await as_awaitable(make_sender<V, set_value<V>(int), set_value<V>()>(
                [](auto& r) { set_value<V>{}(std::move(r)); }));
        EXPECT_EQ(either.index(), 1U);
    };
    coil::run(work());
}

TYPED_TEST(Senders, AreAwaitedByTheOperator) {
    using V = TypeParam;
    using namespace coil::sender_operators;
    const auto work = []() -> task<int> {
        auto sender =
            make_sender<V, set_value<V>(int)>([](auto& r) { set_value<V>{}(std::move(r), 7); });
        co_return co_await std::move(sender);
    };
    EXPECT_EQ(coil::run(work()), 7);
}

TYPED_TEST(Senders, ErrorsAreThrown) {
    using V = TypeParam;
    using set_error = typename V::set_error_t;
    const auto work = []() -> task<> {
        EXPECT_THROW(
            co_await as_awaitable(make_sender<V, set_error(std::exception_ptr)>([](auto& r) {
                set_error{}(std::move(r), std::make_exception_ptr(std::runtime_error("thrown")));
            })),
            std::runtime_error);
        EXPECT_THROW(co_await as_awaitable(make_sender<V, set_error(int)>(
                         [](auto& r) { set_error{}(std::move(r), 5); })),
                     int);
        try {
            co_await as_awaitable(make_sender<V, set_error(std::error_code)>([](auto& r) {
                set_error{}(std::move(r), std::make_error_code(std::errc::host_unreachable));
            }));
            ADD_FAILURE() << "no exception";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::host_unreachable);
        }
        try {
            co_await as_awaitable(make_sender<V, typename V::set_stopped_t()>(
                [](auto& r) { typename V::set_stopped_t{}(std::move(r)); }));
            ADD_FAILURE() << "no exception";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
    };
    coil::run(work());
}

TYPED_TEST(Senders, ATaskResumesOnItsContext) {
    using V = TypeParam;
    std::vector<std::jthread> threads;
    const auto work = [](std::vector<std::jthread>& on) -> task<int> {
        const auto here = std::this_thread::get_id();
        int sum = 0;
        for (int i = 0; i < 20; ++i) {
            sum += co_await as_awaitable(on_thread<V>(on, i));
            EXPECT_EQ(std::this_thread::get_id(), here);
        }
        co_return sum;
    };
    EXPECT_EQ(coil::run(work(threads)), 190);
}

TYPED_TEST(Senders, TenThousandThatCompleteAtOnceDoNotGrowTheStack) {
    using V = TypeParam;
    const auto work = []() -> task<int> {
        int sum = 0;
        for (int i = 0; i < 10000; ++i) {
            sum += co_await as_awaitable(make_sender<V, set_value<V>(int)>(
                [](auto& r) { set_value<V>{}(std::move(r), 1); }));
        }
        co_return sum;
    };
    EXPECT_EQ(coil::run(work()), 10000);
}

TYPED_TEST(Senders, AStopRequestReachesTheReceiversToken) {
    using V = TypeParam;
    const auto waits = []() -> task<bool> {
        try {
            co_await as_awaitable(until_stopped<V>());
        } catch (const std::system_error& e) {
            co_return e.code() == std::errc::operation_canceled;
        }
        co_return false;
    };
    inplace_stop_source source;
    io_context ctx;
    auto handle = ctx.spawn(waits(), source.get_token());
    ctx.start();
    std::this_thread::sleep_for(2ms);
    source.request_stop();
    EXPECT_TRUE(handle.get());
    ctx.join();
    EXPECT_TRUE(coil::run(waits(), source.get_token())); // a stop requested before the start
    const auto limited = [](auto w) -> task<> {
        try {
            co_await timeout(w(), 2ms);
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
    };
    coil::run(limited([]() -> task<> { co_await as_awaitable(until_stopped<V>()); }));
}

TYPED_TEST(Senders, AShutdownStopsTheSenderAndWaits) {
    using V = TypeParam;
    int destroyed = 0;
    const auto waits = [](int& count) -> task<> {
        const coil_test::on_destruction local(count);
        co_await as_awaitable(until_stopped<V>());
    };
    {
        io_context ctx;
        ctx.co_spawn(waits(destroyed));
        ctx.co_spawn([]() -> task<> {
            co_await sleep_for(2ms); // the other task has started by then
            this_context().stop();
        });
        ctx.run();
    }
    EXPECT_EQ(destroyed, 1);
}

TYPED_TEST(Senders, ADestroyedFrameStopsTheSenderAndWaits) {
    using V = TypeParam;
    std::vector<std::jthread> threads;
    std::atomic<int> completed{0};
    const auto work = [](std::vector<std::jthread>& on, std::atomic<int>& count) -> task<> {
        const auto completes_later = [](std::vector<std::jthread>& t,
                                        std::atomic<int>& n) -> task<> {
            co_await as_awaitable(make_sender<V, set_value<V>()>([&t, &n](auto& receiver) {
                t.emplace_back([&receiver, &n] {
                    std::this_thread::sleep_for(5ms);
                    ++n;
                    set_value<V>{}(std::move(receiver));
                });
            }));
        };
        const auto is_stopped = []() -> task<> { co_await as_awaitable(until_stopped<V>()); };
        try {
            scope s;
            s.spawn(completes_later(on, count));
            s.spawn(is_stopped());
            co_await yield();
            throw std::runtime_error("the scope is left without join()");
        } catch (const std::runtime_error&) {
            EXPECT_EQ(count.load(), 1) << "the frame was destroyed before the sender completed";
        }
    };
    coil::run(work(threads, completed));
}

// ---- schedulers

template <class V>
struct record_receiver {
    using receiver_concept = typename V::receiver_tag;
    struct env {
        inplace_stop_token token;
        inplace_stop_token query(typename V::get_stop_token_t) const noexcept { return token; }
        friend inplace_stop_token tag_invoke(typename V::get_stop_token_t, const env& e) noexcept
            requires(V::uses_tag_invoke)
        {
            return e.token;
        }
    };
    void set_value() && noexcept { record("value"); }
    void set_error(std::exception_ptr) && noexcept { record("error"); }
    void set_stopped() && noexcept { record("stopped"); }
    [[nodiscard]] env get_env() const noexcept { return {token}; }
    friend void tag_invoke(typename V::set_value_t, record_receiver&& r) noexcept
        requires(V::uses_tag_invoke)
    {
        r.record("value");
    }
    friend void tag_invoke(typename V::set_error_t, record_receiver&& r,
                           std::exception_ptr) noexcept
        requires(V::uses_tag_invoke)
    {
        r.record("error");
    }
    friend void tag_invoke(typename V::set_stopped_t, record_receiver&& r) noexcept
        requires(V::uses_tag_invoke)
    {
        r.record("stopped");
    }
    friend env tag_invoke(typename V::get_env_t, const record_receiver& r) noexcept
        requires(V::uses_tag_invoke)
    {
        return r.get_env();
    }
    void record(const char* what) const {
        *how = what;
        *where = std::this_thread::get_id();
    }

    std::string* how;
    std::thread::id* where;
    inplace_stop_token token;
};

template <class V>
class scheduled {
public:
    template <class Executor>
    explicit scheduled(Executor& executor, inplace_stop_token token = {})
        : operation_(typename V::connect_t{}(typename V::schedule_t{}(scheduler<V>(executor)),
                                             record_receiver<V>{&how, &where, token})) {
        typename V::start_t{}(operation_);
    }
    std::string how;
    std::thread::id where;

private:
    std::invoke_result_t<typename V::connect_t, detail::schedule_sender<V>, record_receiver<V>>
        operation_;
};

TYPED_TEST(Senders, ASchedulerCompletesOnItsExecutor) {
    using V = TypeParam;
    {
        thread_pool pool(1);
        scheduled<V> s(pool);
        pool.drain();
        EXPECT_EQ(s.how, "value");
        EXPECT_NE(s.where, std::this_thread::get_id());
        EXPECT_EQ(scheduler<V>(pool), scheduler<V>(pool));
        thread_pool other(1);
        EXPECT_NE(scheduler<V>(pool), scheduler<V>(other));
        const auto env = typename V::get_env_t{}(typename V::schedule_t{}(scheduler<V>(pool)));
        if constexpr (!V::uses_tag_invoke) {
            using query = typename V::template get_completion_scheduler_t<typename V::set_value_t>;
            EXPECT_EQ(env.query(query()), scheduler<V>(pool));
        }
    }
    {
        io_context ctx;
        scheduled<V> s(ctx);
        EXPECT_EQ(s.how, "");
        ctx.run();
        EXPECT_EQ(s.how, "value");
        EXPECT_EQ(s.where, std::this_thread::get_id());
    }
}

TYPED_TEST(Senders, ASchedulerStops) {
    using V = TypeParam;
    inplace_stop_source source;
    io_context ctx;
    scheduled<V> s(ctx, source.get_token());
    source.request_stop();
    ctx.run();
    EXPECT_EQ(s.how, "stopped");

    thread_pool pool(1);
    pool.stop();
    scheduled<V> dropped(pool);
    EXPECT_EQ(dropped.how, "stopped");

    any_executor empty; // submitting throws
    scheduled<V> thrown(empty);
    EXPECT_EQ(thrown.how, "error");
}

TYPED_TEST(Senders, TheEnvironmentHasTheSchedulerOfTheTask) {
    using V = TypeParam;
    const auto work = [](io_context& here) -> task<> {
        co_await as_awaitable(make_sender<V, set_value<V>()>([&here](auto& receiver) {
            const auto env = typename V::get_env_t{}(receiver);
            if constexpr (V::uses_tag_invoke) {
                EXPECT_EQ(typename V::get_scheduler_t{}(env), scheduler<V>(here));
            } else {
                EXPECT_EQ(env.query(typename V::get_scheduler_t()), scheduler<V>(here));
            }
            set_value<V>{}(std::move(receiver));
        }));
    };
    io_context ctx;
    coil_test::run_on(ctx, work(ctx));
}

// ---- as_sender

task<int> answers(std::thread::id& where) {
    co_await sleep_for(1ms);
    where = std::this_thread::get_id();
    co_return 42;
}
task<int> fails() {
    co_await yield();
    throw std::runtime_error("thrown");
}
task<int> naps() {
    const io_result slept = co_await sleep_for(1h);
    if (slept == -ECANCELED) {
        throw std::system_error(std::make_error_code(std::errc::operation_canceled));
    }
    co_return 0;
}

TYPED_TEST(Senders, ATaskIsASender) {
    using V = TypeParam;
    io_context ctx;
    ctx.start();
    std::thread::id where;
    const auto value = mini::sync_wait<V, int>(as_sender<V>(ctx, answers(where)));
    EXPECT_EQ(value.value, 42);
    EXPECT_NE(where, std::this_thread::get_id());
    const auto error = mini::sync_wait<V, int>(as_sender<V>(ctx, fails()));
    EXPECT_THROW(std::rethrow_exception(error.error), std::runtime_error);
    ctx.join();
}

TYPED_TEST(Senders, AReceiversStopTokenStopsTheTask) {
    using V = TypeParam;
    io_context ctx;
    ctx.start();
    inplace_stop_source source;
    std::jthread stops([&] {
        std::this_thread::sleep_for(2ms);
        source.request_stop();
    });
    EXPECT_TRUE((mini::sync_wait<V, int>(as_sender<V>(ctx, naps()), source.get_token()).stopped));
    // A stop requested before the start.
    EXPECT_TRUE((mini::sync_wait<V, int>(as_sender<V>(ctx, naps()), source.get_token()).stopped));
    ctx.join();
}

task<int> stops_its_context() {
    this_context().stop();
    co_return co_await naps();
}

TYPED_TEST(Senders, AShutdownCompletesTheSender) {
    using V = TypeParam;
    io_context ctx;
    ctx.start();
    const auto ended = mini::sync_wait<V, int>(as_sender<V>(ctx, stops_its_context()));
    EXPECT_TRUE(ended.stopped || ended.error);
    EXPECT_FALSE(ended.value);
    ctx.join();
}

TYPED_TEST(Senders, ASenderOfATaskIsAwaitedByATask) {
    using V = TypeParam;
    const auto work = []() -> task<int> {
        std::thread::id where;
        co_return co_await as_awaitable(as_sender<V>(answers(where)));
    };
    EXPECT_EQ(coil::run(work()), 42);
}

#if COIL_HAS_STDEXEC
TEST(Stdexec, WorksInBothDirections) {
    const auto work = [](thread_pool& pool) -> task<int> {
        using namespace coil::sender_operators;
        std::thread::id where;
        int sum = co_await (stdexec::just(1) | stdexec::then([](int n) { return n + 1; }));
        co_await stdexec::schedule(scheduler(pool));
        sum += co_await stdexec::starts_on(scheduler(pool), stdexec::just(7));
        sum += co_await as_awaitable(as_sender(answers(where)));
        const auto [a, b] = co_await stdexec::when_all(stdexec::just(1), stdexec::just(2));
        co_return sum + a + b;
    };
    thread_pool pool(1);
    EXPECT_EQ(coil::run(work(pool)), 2 + 7 + 42 + 3);
    io_context ctx;
    ctx.start();
    std::thread::id where;
    const auto twice = [](int n) { return 2 * n; };
    const auto result = stdexec::sync_wait(as_sender(ctx, answers(where)) | stdexec::then(twice));
    EXPECT_EQ(std::get<0>(result.value()), 84);
    static_assert(stdexec::scheduler<decltype(scheduler(ctx))>);
    ctx.join();
}
#else
TEST(Stdexec, WorksInBothDirections) { GTEST_SKIP() << "<stdexec/execution.hpp> is not found"; }
#endif

} // namespace
