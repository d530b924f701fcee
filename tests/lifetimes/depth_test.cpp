// Chains that end: as long as one likes, on any stack (guarantee G10). And what a coroutine of
// another library starts by a plain resume().

#include "lifetimes/support.hpp"

#include <atomic>
#include <coroutine>
#include <exception>
#include <semaphore>
#include <thread>
#include <utility>

using namespace lifetime_test;

namespace {

// 5. Depth.

/// Waits until the test opens it, and resumes by a plain call.
struct door {
    std::coroutine_handle<> waiter;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiter = h; }
    void await_resume() const noexcept {}
};

KNOWN_TO_FAIL_TEST(Issue, G10_AChainOfInlineAsyncTasksCompletes, "point 5: exhausts the stack") {
    using inline_task = async_task<int, inline_executor>;
    const int depth = 60'000;
    door gate;
    struct links {
        static inline_task first(door& gate) {
            co_await gate;
            co_return 1;
        }
        static inline_task next(inline_task before) { co_return co_await std::move(before) + 1; }
    };
    inline_task last = links::first(gate);
    for (int i = 1; i < depth; ++i) {
        last = links::next(std::move(last));
    }
    gate.waiter.resume();
    EXPECT_EQ(last.get(), depth);
}

task<> nested(int depth, std::atomic<int>& alive, std::binary_semaphore& begun) {
    const counted local(alive);
    if (depth == 0) {
        co_await sleeps_for_ever(alive, begun);
    } else {
        co_await nested(depth - 1, alive, begun);
    }
}

KNOWN_TO_FAIL_TEST(Issue, G10_AChainOfAwaitsIsDestroyed, "point 5: exhausts the stack") {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    io_context context;
    context.co_spawn(nested(coil_test::sanitized ? 20'000 : 100'000, alive, begun));
    std::jthread stopper([&] {
        begun.acquire();
        context.stop();
    });
    context.run();
    EXPECT_EQ(alive, 0);
}

task<> nested_combinations(int depth, std::atomic<int>& alive, std::binary_semaphore& begun) {
    const counted local(alive);
    if (depth == 0) {
        co_await sleeps_for_ever(alive, begun);
    } else {
        co_await when_all(nested_combinations(depth - 1, alive, begun));
    }
}

KNOWN_TO_FAIL_TEST(Issue, G10_AChainOfCombinationsIsAskedToStop, "point 5: exhausts the stack") {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    io_context context;
    const int depth = coil_test::sanitized ? 10'000 : 40'000;
    auto handle = context.spawn(nested_combinations(depth, alive, begun));
    std::jthread stopper([&] {
        begun.acquire();
        handle.cancel();
    });
    context.run();
    EXPECT_EQ(alive, 0);
}

KNOWN_TO_FAIL_TEST(Issue, G10_AChainOfCombinationsIsDestroyed, "point 5: exhausts the stack") {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    io_context context;
    context.co_spawn(nested_combinations(coil_test::sanitized ? 10'000 : 40'000, alive, begun));
    std::jthread stopper([&] {
        begun.acquire();
        context.stop();
    });
    context.run();
    EXPECT_EQ(alive, 0);
}

// 8. Coroutines of other libraries.

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
task<int> adds(int n) { co_return n == 0 ? 0 : co_await one() + co_await adds(n - 1); }

ISOLATED_TEST(Issue, G1_AForeignCoroutineAwaitsATask) {
    int sum = 0;
    auto program = [&]() -> foreign { sum = co_await adds(10); };
    const foreign f = program();
    f.handle.resume();
    EXPECT_TRUE(f.handle.done());
    EXPECT_EQ(sum, 10);
}

ISOLATED_TEST(Issue, G1_AForeignResumeEndsATask) {
    door gate;
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

ISOLATED_TEST(Issue, G1_AForeignResumeInsideOfATask) {
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

ISOLATED_TEST(Issue, G1_AForeignCoroutineAwaitsAGenerator) {
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

} // namespace
