// Combinations of awaitables that are not coil's own types.

#include "compose/combinations.hpp"

#include <coroutine>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

using namespace coil;
using namespace compose_test;

namespace {

class ForeignAwaitable : public ::testing::Test {
protected:
    listening_context ctx_;
};

/// The member of the awaiter that throws.
enum class moment { never, ready, suspend, resume };

/// An awaiter that is ready, or whose await_suspend returns false, or that throws.
struct at_once {
    bool suspends_first = false;
    moment throws = moment::never;

    [[nodiscard]] bool await_ready() const {
        if (throws == moment::ready) {
            throw oops("ready");
        }
        return !suspends_first && throws != moment::suspend;
    }
    bool await_suspend(std::coroutine_handle<>) const {
        if (throws == moment::suspend) {
            throw oops("suspend");
        }
        return false;
    }
    [[nodiscard]] int await_resume() const {
        if (throws == moment::resume) {
            throw oops("resume");
        }
        return 7;
    }
};

TEST_F(ForeignAwaitable, AwaitersThatAreReadyAtOnce) {
    auto main = []() -> task<> {
        auto [a, b, c] = co_await when_all(at_once(), at_once{true}, gives_later(1));
        EXPECT_EQ(a + b + c, 15);
        const at_once named;
        EXPECT_EQ((co_await when_any(named, sleep_for(1h))).index, 0U);
        EXPECT_EQ(co_await timeout(at_once{true}, 1h), 7);
        EXPECT_EQ(co_await shield(at_once{true}), 7);
        scope s;
        s.spawn(at_once{true});
        s.spawn(named);
        co_await s.join();
    };
    ctx_.run(main());
}

TEST_F(ForeignAwaitable, G12_ExceptionsOfEveryAwaiterFunctionPropagate) {
    auto main = []() -> task<> {
        for (const moment when : {moment::ready, moment::suspend, moment::resume}) {
            const std::string text = when == moment::ready     ? "ready"
                                     : when == moment::suspend ? "suspend"
                                                               : "resume";
            int cancelled = 0;
            EXPECT_EQ(co_await complaint_of([](moment w, int& n) -> task<> {
                          co_await when_all(obeys(n), at_once{false, w}, waits(n));
                      }(when, cancelled)),
                      text);
            EXPECT_EQ(co_await complaint_of([](moment w, int& n) -> task<> {
                          co_await when_any(obeys(n), at_once{false, w}, waits(n));
                      }(when, cancelled)),
                      text);
            EXPECT_EQ(cancelled, 4);
            EXPECT_EQ(co_await complaint_of([](moment w) -> task<> {
                          scope s;
                          s.spawn(at_once{false, w});
                          co_await s.join();
                      }(when)),
                      text);
            EXPECT_EQ(co_await complaint_of([](moment w) -> task<> {
                          co_await timeout(at_once{false, w}, 1h);
                      }(when)),
                      text);
        }
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(ForeignAwaitable, G12_ALosersExceptionIsNotLost) {
    auto main = []() -> task<> {
        const auto first = co_await when_any(at_once(), at_once{false, moment::resume});
        EXPECT_EQ(first.index, 0U);
    };
    ctx_.run(main());
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"resume"});
}

/// A lazy task of another library, which knows neither coil's task owners nor its stop tokens.
class foreign_task {
public:
    struct promise_type {
        foreign_task get_return_object() {
            return foreign_task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        struct back {
            bool await_ready() noexcept { return false; }
            detail::transfer await_suspend(std::coroutine_handle<promise_type> self) noexcept {
                return detail::transfer_to(self, self.promise().waiter);
            }
            void await_resume() noexcept {}
        };
        back final_suspend() noexcept { return {}; }
        void return_value(int n) { value = n; }
        void unhandled_exception() { error = std::current_exception(); }

        std::coroutine_handle<> waiter;
        int value = 0;
        std::exception_ptr error;
    };

    foreign_task(foreign_task&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
    ~foreign_task() {
        if (self_) {
            self_.destroy();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    detail::transfer await_suspend(std::coroutine_handle<> waiter) const noexcept {
        self_.promise().waiter = waiter;
        return detail::transfer_to(waiter, self_);
    }
    [[nodiscard]] int await_resume() const {
        if (self_.promise().error) {
            std::rethrow_exception(self_.promise().error);
        }
        return self_.promise().value;
    }

private:
    explicit foreign_task(std::coroutine_handle<promise_type> self) : self_(self) {}
    std::coroutine_handle<promise_type> self_;
};

foreign_task foreign(int value, int& destroyed) {
    const coil_test::on_destruction guard(destroyed);
    co_await sleep_for(1ms);
    auto [inside] = co_await when_all(gives_later(value));
    co_return inside;
}

TEST_F(ForeignAwaitable, CoroutinesOfAnotherType) {
    int destroyed = 0;
    auto main = [](int& n) -> task<> {
        auto [a, b] = co_await when_all(foreign(1, n), foreign(2, n));
        EXPECT_EQ(a + b, 3);
        EXPECT_EQ(co_await timeout(foreign(3, n), 1h), 3);
        EXPECT_EQ(co_await shield(foreign(4, n)), 4);
        scope s;
        s.spawn(foreign(5, n));
        co_await s.join();
        EXPECT_EQ(n, 5);
    };
    ctx_.run(main(destroyed));
}

TEST_F(ForeignAwaitable, G5_TheyAreDestroyedWithTheirParent) {
    auto waits_for = [](int& destroyed) -> coil_test::manual {
        co_await when_all(foreign(1, destroyed), foreign(2, destroyed));
    };
    auto main = [](auto f) -> task<> {
        for (int turns = 0; turns < 4; ++turns) {
            int destroyed = 0;
            {
                const auto victim = f(destroyed);
                victim.start();
                for (int i = 0; i < turns; ++i) {
                    co_await yield();
                }
            }
            EXPECT_EQ(destroyed, turns == 0 ? 0 : 2); // or not started
        }
    };
    ctx_.run(main(waits_for));
}

/// A box of numbers. A number that was given to an await and not taken returns to the front.
class box {
public:
    class awaiter {
    public:
        explicit awaiter(box& from) : box_(from) {}
        awaiter(const awaiter&) = delete;
        ~awaiter() {
            if (item_) {
                box_.items.push_front(*item_);
            }
        }
        [[nodiscard]] bool await_ready() {
            if (!box_.items.empty()) {
                item_ = box_.items.front();
                box_.items.pop_front();
            }
            return item_.has_value();
        }
        void await_suspend(std::coroutine_handle<>) const noexcept { std::abort(); }
        int await_resume() noexcept { return *std::exchange(item_, std::nullopt); }

    private:
        box& box_;
        std::optional<int> item_;
    };

    std::deque<int> items;

private:
    friend awaiter operator co_await(box& from) { return awaiter(from); }
};

TEST_F(ForeignAwaitable, ALoserReturnsWhatItWasGiven) {
    auto main = []() -> task<> {
        box numbers;
        numbers.items = {1, 2, 3};
        const auto first = co_await when_any(at_once(), numbers, when_all(numbers, at_once()));
        EXPECT_EQ(first.index, 0U);
        EXPECT_EQ(numbers.items.size(), 3U);
        auto [a, b] = co_await when_all(numbers, numbers);
        EXPECT_EQ(a, 1);
        EXPECT_EQ(b, 2);
        EXPECT_EQ(co_await complaint_of([](box& all) -> task<> {
                      co_await when_all(all, fails_later("beside"));
                  }(numbers)),
                  "beside");
        EXPECT_EQ(numbers.items, std::deque<int>{3});
    };
    ctx_.run(main());
}

/// Holds coroutines until they are released, outside of the loop.
struct gate {
    std::vector<std::coroutine_handle<>> waiting;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) { waiting.push_back(waiter); }
    void await_resume() const noexcept {}
    void open() {
        for (const auto waiter : std::exchange(waiting, {})) {
            detail::resume(waiter);
        }
    }
};

TEST_F(ForeignAwaitable, ResumedOutsideOfTheLoop) {
    auto main = []() -> task<> {
        gate closed;
        auto opens = [](gate& g) -> task<> {
            co_await sleep_for(1ms);
            g.open();
        };
        co_await when_all(closed, closed, opens(closed));
        EXPECT_EQ((co_await when_any(closed, opens(closed))).index, 0U);
        EXPECT_TRUE(closed.waiting.empty());
    };
    ctx_.run(main());
}

} // namespace
