// Coroutines of other types between tasks: how they pass the stop token on, and what is printed if
// they do not.

#include "support/run.hpp"

#include <concepts>
#include <coroutine>
#include <exception>
#include <regex>
#include <string>
#include <system_error>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace foreign {

/// C++26's std::get_stop_token: queries an environment. If it has no token, the result is one that
/// is never stopped.
struct never_stop_token {
    static constexpr bool stop_requested() noexcept { return false; }
    static constexpr bool stop_possible() noexcept { return false; }
};
struct get_stop_token_t {
    template <class Env>
    auto operator()(const Env& env) const noexcept {
        if constexpr (requires { env.query(*this); }) {
            return env.query(*this);
        } else {
            return never_stop_token();
        }
    }
};

// The ways in which a promise offers its token.
struct silent {};
struct by_member {
    [[nodiscard]] inplace_stop_token stop_token() const noexcept { return token; }
    inplace_stop_token token;
};
struct by_query_name {
    [[nodiscard]] inplace_stop_token get_stop_token() const noexcept { return token; }
    inplace_stop_token token;
};
struct by_environment {
    struct env {
        [[nodiscard]] inplace_stop_token get_stop_token() const noexcept { return token; }
        inplace_stop_token token;
    };
    [[nodiscard]] env get_env() const noexcept { return {token}; }
    inplace_stop_token token;
};

/// A lazy coroutine of another library.
template <class Token>
class wrapper {
public:
    struct promise_type : Token {
        wrapper get_return_object() {
            return wrapper(std::coroutine_handle<promise_type>::from_promise(*this));
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

    wrapper(wrapper&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
    wrapper& operator=(wrapper&&) = delete;
    ~wrapper() {
        if (self_) {
            self_.destroy();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    detail::transfer await_suspend(std::coroutine_handle<P> waiter) const noexcept {
        if constexpr (requires { self_.promise().token; }) {
            self_.promise().token = get_stop_token_t()(waiter.promise().get_env());
        }
        self_.promise().waiter = waiter;
        return detail::transfer_to(waiter, self_);
    }
    int await_resume() const {
        if (self_.promise().error) {
            std::rethrow_exception(self_.promise().error);
        }
        return self_.promise().value;
    }

private:
    explicit wrapper(std::coroutine_handle<promise_type> self) : self_(self) {}
    std::coroutine_handle<promise_type> self_;
};

template <class Token>
wrapper<Token> sleeps_inside(std::chrono::milliseconds time) {
    co_return co_await
        [](std::chrono::milliseconds t) -> task<int> { co_return co_await sleep_for(t); }(time);
}

/// Awaits a long sleep through the foreign coroutine with a timeout; returns what was printed.
template <class Token>
std::string limited() {
    testing::internal::CaptureStderr();
    run([]() -> task<> {
        const auto began = std::chrono::steady_clock::now();
        const auto outer = []() -> task<io_result> {
            co_return io_result(co_await sleeps_inside<Token>(1h));
        };
        EXPECT_EQ(co_await timeout(outer(), 50ms), -ETIMEDOUT);
        EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
    }());
    return testing::internal::GetCapturedStderr();
}

TEST(Foreign, ATokenInThePromiseIsFound) { EXPECT_EQ(limited<by_member>(), ""); }
TEST(Foreign, ATokenByTheNameOfTheQueryIsFound) { EXPECT_EQ(limited<by_query_name>(), ""); }
// mistake 26: its promise has a stop token, or an environment with one
// shows: nothing: the stop request passes through
TEST(Foreign, ATokenInTheEnvironmentIsFound) { EXPECT_EQ(limited<by_environment>(), ""); }

// mistake 26: its promise has no stop token
// shows: `awaits an operation, but its promise, ..., has no stop token`, and the member to write
TEST(Foreign, WithoutATokenTheFirstAwaitReportsIt) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
        run([]() -> task<> { EXPECT_EQ(co_await sleeps_inside<silent>(1ms), 0); }());
    }
    const std::string printed = testing::internal::GetCapturedStderr();
#if COIL_ASSERTIONS
    const std::regex once("coil: .*sleeps_inside<foreign::silent>.* awaits an operation, but its "
                          "promise, .*wrapper<foreign::silent>::promise_type, has no stop token: a "
                          "stop, a timeout\\(\\) or a shutdown of its callers does not reach what "
                          "it awaits\\. Give the promise a member `coil::inplace_stop_token "
                          "stop_token\\(\\) const noexcept` that returns the token of the awaiting "
                          "coroutine's promise, or \\{\\} if it must not be stopped\\.\n");
    EXPECT_TRUE(std::regex_match(printed, once)) << printed;
#else
    EXPECT_EQ(printed, "");
#endif
}

TEST(Foreign, ATaskAnswersTheQueryOfItsEnvironment) {
    run([]() -> task<> {
        const inplace_stop_source source;
        const auto asks = []() -> task<bool> {
            struct environment {
                inplace_stop_token token;
                bool await_ready() const noexcept { return false; }
                bool await_suspend(std::coroutine_handle<task<bool>::promise_type> self) noexcept {
                    token = get_stop_token_t()(self.promise().get_env());
                    return false;
                }
                inplace_stop_token await_resume() const noexcept { return token; }
            };
            const inplace_stop_token token = co_await environment();
            co_return token == co_await this_task::stop_token() && token.stop_possible();
        };
        EXPECT_TRUE(co_await spawn(asks(), source.get_token()));
    }());
}

} // namespace foreign
