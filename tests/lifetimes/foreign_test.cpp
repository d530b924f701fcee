// Coroutines of other libraries, which know nothing of coil and are resumed by a plain resume().

#include "lifetimes/support.hpp"

#include <atomic>
#include <coroutine>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace lifetime_test;

namespace {

/// Suspends its awaiter until the test opens it, which resumes the awaiter by a plain call.
struct plain_door {
    std::coroutine_handle<> waiter;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiter = h; }
    void await_resume() const noexcept {}
};

/// A minimal lazy coroutine, which knows nothing of coil: resumed by handle.resume() alone.
class foreign {
public:
    struct promise_type {
        foreign get_return_object() {
            return foreign(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    foreign(foreign&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    ~foreign() {
        if (handle) {
            handle.destroy();
        }
    }
    std::coroutine_handle<promise_type> handle;

private:
    explicit foreign(std::coroutine_handle<promise_type> h) : handle(h) {}
};

task<int> one() { co_return 1; }
task<int> adds(int n) {
    if (n == 0) {
        co_return 0;
    }
    const int first = co_await one();
    co_return first + co_await adds(n - 1);
}

ISOLATED_TEST(Foreign, G1_AForeignCoroutineAwaitsATask) {
    int sum = 0;
    auto program = [&]() -> foreign { sum = co_await adds(10); };
    const foreign f = program();
    f.handle.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(sum, 10);
}

ISOLATED_TEST(Foreign, G1_AForeignResumeEndsATask) {
    plain_door gate;
    int sum = 0;
    auto waits = [&]() -> task<int> {
        co_await gate;
        co_return co_await adds(5);
    };
    auto program = [&]() -> foreign { sum = co_await waits(); };
    const foreign f = program();
    f.handle.resume();
    EXPECT_FALSE(f.handle.done());
    gate.waiter.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(sum, 5);
}

ISOLATED_TEST(Foreign, G1_AForeignResumeInsideOfATask) {
    int sum = 0;
    auto program = [&]() -> foreign { sum = co_await adds(10); };
    auto main = [&]() -> task<int> {
        const foreign f = program();
        f.handle.resume();
        EXPECT_TRUE(f.handle.done());
        co_return sum + co_await adds(1);
    };
    EXPECT_EQ(coil::run(main()), 11);
}

ISOLATED_TEST(Foreign, G1_AForeignCoroutineAwaitsAGenerator) {
    int sum = 0;
    auto counts = []() -> async_generator<int> {
        for (int i = 1; i <= 4; ++i) {
            co_yield co_await one() * i;
        }
    };
    auto program = [&]() -> foreign {
        auto all = counts();
        while (auto element = co_await all.next()) {
            sum += *element;
        }
    };
    const foreign f = program();
    f.handle.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(sum, 10);
}

/// Awaits that complete immediately alternate with awaits that are resumed by foreign code.
ISOLATED_TEST(Foreign, G1_AForeignCoroutineAwaitsOneAfterTheOther) {
    plain_door gate;
    std::vector<int> seen;
    struct work {
        static task<int> waits(plain_door& d) {
            co_await d;
            co_return 2;
        }
        static task<int> throws() {
            throw std::runtime_error("of the task");
            co_return 0;
        }
    };
    auto program = [&]() -> foreign {
        seen.push_back(co_await one());
        seen.push_back(co_await work::waits(gate));
        try {
            seen.push_back(co_await work::throws());
        } catch (const std::runtime_error&) {
            seen.push_back(3);
        }
        seen.push_back(co_await adds(4));
        co_await gate;
        seen.push_back(co_await shield(one()) + 4);
    };
    const foreign f = program();
    f.handle.resume();
    EXPECT_EQ(seen, std::vector<int>{1});
    gate.waiter.resume();
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4}));
    gate.waiter.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 5}));
}

/// Awaits of a foreign coroutine in a loop do not grow the stack.
ISOLATED_TEST(Foreign, G10_AForeignCoroutineAwaitsManyTasks) {
    constexpr int many = coil_test::sanitized ? 100'000 : 1'000'000;
    long sum = 0;
    auto program = [&]() -> foreign {
        for (int i = 0; i < many; ++i) {
            sum += co_await one();
        }
    };
    const foreign f = program();
    f.handle.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(sum, many);
}

/// A plain resume() inside of a coroutine of coil returns when the coroutine that it resumed has
/// suspended.
ISOLATED_TEST(Foreign, G1_APlainResumeInsideOfACoroutineIsOneCall) {
    plain_door gate;
    std::vector<int> order;
    struct work {
        static task<> waits(plain_door& d, std::vector<int>& into) {
            co_await d;
            into.push_back(co_await adds(2));
            co_await d;
            into.push_back(4);
        }
    };
    auto program = [&]() -> foreign { co_await work::waits(gate, order); };
    auto main = [&]() -> task<> {
        const foreign f = program();
        f.handle.resume();
        order.push_back(1);
        co_await yield();
        gate.waiter.resume();
        order.push_back(3);
        order.push_back(co_await one() + 2);
        gate.waiter.resume();
        EXPECT_TRUE(f.handle.done());
    };
    coil::run(main());
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 3, 4}));
}

/// Combinations need a context; a foreign coroutine on one may await them.
ISOLATED_TEST(Foreign, G1_AForeignCoroutineOnAContextAwaitsCombinations) {
    int sum = 0;
    auto program = [&]() -> foreign {
        const auto [a, b] = co_await when_all(one(), adds(3));
        sum += a + b;
        const auto first = co_await when_any(one(), yield());
        sum += first.index == 0 ? 10 : 20;
        sum += co_await timeout(adds(100), 1h);
        coil::scope children;
        children.spawn(one());
        co_await children.join();
        co_await sleep_for(1us);
        sum += co_await shield(adds(1000));
    };
    auto main = [&]() -> task<> {
        const foreign f = program();
        f.handle.resume();
        while (!f.handle.done()) {
            co_await yield();
        }
    };
    coil::run(main());
    EXPECT_TRUE(sum == 1 + 3 + 10 + 100 + 1000 || sum == 1 + 3 + 20 + 100 + 1000) << sum;
}

/// Destroying a coroutine that awaits also destroys everything that it awaits.
ISOLATED_TEST(Foreign, G5_AForeignCoroutineIsDestroyedInTheMiddle) {
    plain_door gate;
    std::atomic<int> alive = 0;
    struct work {
        static task<> nested(plain_door& d, std::atomic<int>& lives, int depth) {
            const counted local(lives);
            if (depth > 0) {
                co_await nested(d, lives, depth - 1);
            } else {
                co_await d;
            }
        }
    };
    auto program = [&]() -> foreign { co_await work::nested(gate, alive, 100'000); };
    {
        const foreign f = program();
        f.handle.resume();
        EXPECT_EQ(alive, 100'001);
    }
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Foreign, G1_AGeneratorInsideOfAForeignCoroutine) {
    int sum = 0;
    auto inner = []() -> generator<int> {
        co_yield 1;
        co_yield 2;
    };
    auto outer = [&]() -> generator<int> {
        co_yield elements_of(inner());
        co_yield 3;
    };
    auto program = [&]() -> foreign {
        for (const int n : outer()) {
            sum += n + co_await one();
        }
    };
    const foreign f = program();
    f.handle.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(sum, 9);
}

ISOLATED_TEST(Foreign, G1_AForeignCoroutineAwaitsAnInlineAsyncTask) {
    plain_door gate;
    int sum = 0;
    struct work {
        static async_task<int, inline_executor> waits(plain_door& d) {
            const int before = co_await adds(2);
            co_await d;
            co_return before + co_await adds(5);
        }
    };
    auto program = [&]() -> foreign { sum = co_await work::waits(gate) + co_await one(); };
    const foreign f = program();
    f.handle.resume();
    EXPECT_FALSE(f.handle.done());
    gate.waiter.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(sum, 8);
}

} // namespace
