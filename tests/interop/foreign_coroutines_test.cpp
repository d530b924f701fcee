// Coroutine types of other libraries await coil's awaitables, and coil's tasks await them.

#include "support/run.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <coroutine>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace coil;
using namespace std::chrono_literals;

/// Resumes the coroutine that awaits, by symmetric transfer.
struct to_awaiting {
    bool await_ready() noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) noexcept {
        return self.promise().awaiting;
    }
    void await_resume() noexcept {}
};

template <class T>
struct lazy_promise {
    std::suspend_always initial_suspend() noexcept { return {}; }
    to_awaiting final_suspend() noexcept { return {}; }
    void return_value(T v) { value.emplace(std::move(v)); }
    void unhandled_exception() noexcept { error = std::current_exception(); }
    std::coroutine_handle<> awaiting;
    std::optional<T> value;
    std::exception_ptr error;
};

/// A lazy coroutine that any coroutine can await.
template <class T>
class lazy_base {
public:
    lazy_base(std::coroutine_handle<> c, lazy_promise<T>& p) noexcept
        : coroutine_(c), promise_(&p) {}
    lazy_base(lazy_base&& other) noexcept
        : coroutine_(std::exchange(other.coroutine_, nullptr)), promise_(other.promise_) {}
    lazy_base& operator=(lazy_base&&) = delete;
    ~lazy_base() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    class awaiter {
    public:
        awaiter(std::coroutine_handle<> c, lazy_promise<T>& p) noexcept
            : coroutine_(c), promise_(p) {}
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
            promise_.awaiting = awaiting;
            return coroutine_;
        }
        T await_resume() {
            if (promise_.error) {
                std::rethrow_exception(promise_.error);
            }
            return std::move(*promise_.value);
        }

    private:
        std::coroutine_handle<> coroutine_;
        lazy_promise<T>& promise_;
    };
    awaiter operator co_await() && noexcept { return awaiter(coroutine_, *promise_); }

private:
    std::coroutine_handle<> coroutine_;
    lazy_promise<T>* promise_;
};

/// Like cppcoro's task.
template <class T>
class lazy : public lazy_base<T> {
public:
    struct promise_type : lazy_promise<T> {
        lazy get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this), *this};
        }
    };
    using lazy_base<T>::lazy_base;
};

/// Like folly's Task: await_transform() wraps each awaiter, which gets a handle without a promise
/// type.
template <class T>
class wrapped : public lazy_base<T> {
public:
    template <class Awaiter>
    struct via {
        Awaiter inner;
        bool await_ready() { return inner.await_ready(); }
        auto await_suspend(std::coroutine_handle<> self) { return inner.await_suspend(self); }
        decltype(auto) await_resume() { return inner.await_resume(); }
    };
    struct promise_type : lazy_promise<T> {
        wrapped get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this), *this};
        }
        template <class A>
        auto await_transform(A&& awaitable) {
            return via<detail::awaiter_of<A>>{detail::get_awaiter(std::forward<A>(awaitable))};
        }
    };
    using lazy_base<T>::lazy_base;
};

/// Like std::generator: it yields, and cannot await anything.
class numbers {
public:
    struct promise_type {
        numbers get_return_object() noexcept {
            return numbers(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int n) noexcept {
            value = n;
            return {};
        }
        void await_transform() = delete;
        void return_void() noexcept {}
        void unhandled_exception() { throw; }
        int value = 0;
    };
    numbers(numbers&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    numbers& operator=(numbers&&) = delete;
    ~numbers() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }
    std::optional<int> next() {
        coroutine_.resume();
        return coroutine_.done() ? std::nullopt : std::optional(coroutine_.promise().value);
    }

private:
    explicit numbers(std::coroutine_handle<promise_type> c) noexcept : coroutine_(c) {}
    std::coroutine_handle<promise_type> coroutine_;
};

task<int> doubles(int n) {
    co_await yield();
    co_return 2 * n;
}
task<int> triples(int n) { co_return 3 * n; } // needs no context
task<int> fails() {
    co_await yield();
    throw std::runtime_error("thrown");
}

/// Awaits one awaitable of every room.
template <class Coroutine>
Coroutine awaits_everything(thread_pool& pool) {
    const auto here = std::this_thread::get_id();
    int sum = co_await doubles(1); // 2
    co_await sleep_for(1ms);
    co_await yield();
    sum += co_await io::nop(); // 0
    const auto [a, b] = co_await when_all(doubles(1), doubles(2));
    sum += a + b; // 6
    const auto first = co_await when_any(sleep_for(1h), doubles(1));
    sum += static_cast<int>(first.index);    // 1
    sum += co_await timeout(doubles(1), 1h); // 2
    sum += co_await timeout(io::nop(), 1h);  // 0
    mutex m;
    co_await m.lock();
    m.unlock();
    event e;
    e.set();
    co_await e.wait();
    channel<int> c(1);
    co_await c.send(3);
    const auto received = co_await c.recv();
    sum += received.value();                                                   // 3
    sum += co_await from_callback<int>([](completion<int> done) { done(4); }); // 4
    sum += co_await blocking([] { return 5; });                                // 5
    sum += co_await on(pool, triples(2));                                      // 6
    auto handle = spawn(doubles(4));
    sum += co_await std::move(handle); // 8
    auto pending = eager(io::nop());
    sum += co_await pending; // 0
    EXPECT_EQ(std::this_thread::get_id(), here);
    try {
        sum += co_await fails();
    } catch (const std::runtime_error&) {
        sum += 100;
    }
    co_return sum;
}
constexpr int everything = 2 + 6 + 1 + 2 + 3 + 4 + 5 + 6 + 8 + 100;

template <class Coroutine>
class ForeignCoroutines : public testing::Test {};
using coroutines = testing::Types<lazy<int>, wrapped<int>>;
TYPED_TEST_SUITE(ForeignCoroutines, coroutines);

TYPED_TEST(ForeignCoroutines, AwaitEverythingAndAreAwaited) {
    const auto work = [](thread_pool& pool) -> task<int> {
        co_return co_await awaits_everything<TypeParam>(pool);
    };
    thread_pool pool(1);
    EXPECT_EQ(coil::run(work(pool)), everything);
}

TYPED_TEST(ForeignCoroutines, AreChildrenOfCombinators) {
    const auto work = [](thread_pool& pool) -> task<int> {
        const auto [a, b] = co_await when_all(awaits_everything<TypeParam>(pool),
                                              awaits_everything<TypeParam>(pool));
        co_return a + b;
    };
    thread_pool pool(1);
    EXPECT_EQ(coil::run(work(pool)), 2 * everything);
}

template <class Coroutine>
Coroutine throws_above() {
    co_return co_await fails();
}

TYPED_TEST(ForeignCoroutines, PassExceptionsOn) {
    const auto work = []() -> task<> {
        EXPECT_THROW(co_await throws_above<TypeParam>(), std::runtime_error);
    };
    coil::run(work());
}

template <class Coroutine>
Coroutine nests(int depth) {
    const auto below = [](int d) -> task<int> { co_return co_await nests<Coroutine>(d); };
    if (depth == 0) {
        co_return 0;
    }
    co_return 1 + co_await below(depth - 1);
}

TYPED_TEST(ForeignCoroutines, NestInBothDirections) {
    const auto work = []() -> task<int> { co_return co_await nests<TypeParam>(200); };
    EXPECT_EQ(coil::run(work()), 200);
}

template <class Coroutine>
Coroutine waits_forever(int& destroyed) {
    const coil_test::on_destruction local(destroyed);
    co_await sleep_for(1h);
    co_return 0;
}

TYPED_TEST(ForeignCoroutines, AreDestroyedWithTheTaskThatOwnsThem) {
    int destroyed = 0;
    const auto work = [](int& count) -> task<> {
        static_cast<void>(co_await waits_forever<TypeParam>(count));
    };
    {
        io_context ctx;
        ctx.co_spawn(work(destroyed));
        ctx.co_spawn([]() -> task<> {
            co_await sleep_for(2ms); // the other task has started by then
            this_context().stop();
        });
        ctx.run();
    }
    EXPECT_EQ(destroyed, 1);
}

numbers count_to(int n) {
    for (int i = 1; i <= n; ++i) {
        co_yield i;
    }
}

TEST(ForeignGenerators, AreUsedBetweenAwaits) {
    const auto work = []() -> task<int> {
        int sum = 0;
        numbers all = count_to(10);
        while (const std::optional<int> n = all.next()) {
            sum += co_await doubles(*n);
        }
        co_return sum;
    };
    EXPECT_EQ(coil::run(work()), 110);
}

} // namespace
