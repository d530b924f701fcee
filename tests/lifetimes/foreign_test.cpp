// Coroutines of other libraries, which know nothing of coil and are resumed by a plain resume().

#include "lifetimes/support.hpp"

#include <coroutine>
#include <exception>
#include <utility>

using namespace lifetime_test;

namespace {

/// Waits until the test opens it, and resumes by a plain call.
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
