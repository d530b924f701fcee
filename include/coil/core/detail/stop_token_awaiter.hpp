#pragma once

#include <coil/base/assert.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/core/inplace_stop_token.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <type_traits>
#include <version>
#if defined(__cpp_lib_senders)
#include <execution>
#endif

namespace coil {

namespace detail {

/// stop_token() or get_stop_token() of a promise or of its environment, if it returns coil's token.
template <class T>
concept has_stop_token = requires(T& t) {
    { t.stop_token() } -> std::convertible_to<inplace_stop_token>;
};
template <class T>
concept gets_stop_token = requires(T& t) {
    { t.get_stop_token() } -> std::convertible_to<inplace_stop_token>;
};
#if defined(__cpp_lib_senders)
template <class T>
concept answers_stop_token_query = requires(T& t) {
    { std::get_stop_token(t) } -> std::convertible_to<inplace_stop_token>;
};
#else
template <class T>
concept answers_stop_token_query = false;
#endif
template <class T>
concept knows_stop_token = has_stop_token<T> || gets_stop_token<T> || answers_stop_token_query<T>;

template <class P>
concept has_environment_with_stop_token =
    requires(P& promise) { requires knows_stop_token<std::decay_t<decltype(promise.get_env())>>; };

template <knows_stop_token T>
inplace_stop_token stop_token_in(T& from) noexcept {
    if constexpr (has_stop_token<T>) {
        return from.stop_token();
    } else if constexpr (gets_stop_token<T>) {
        return from.get_stop_token();
    } else {
#if defined(__cpp_lib_senders)
        return std::get_stop_token(from);
#endif
    }
}

/// Reports a type of promise without a stop token at its first await.
template <class P>
void note_no_stop_token([[maybe_unused]] const void* frame) noexcept {
#if COIL_ASSERTIONS
    static std::atomic<bool> is_reported = false;
    if (!is_reported.exchange(true, std::memory_order_relaxed)) {
        report_no_stop_token(frame, static_cast<const char*>(__PRETTY_FUNCTION__));
    }
#endif
}

/// The stop token of the awaiting coroutine: of coil's tasks, and of coroutines of other types
/// whose promise has one. A promise whose coroutine must not be stopped returns an empty token.
template <class P>
inplace_stop_token stop_token_of(std::coroutine_handle<P> coroutine) noexcept {
    if constexpr (std::is_void_v<P>) {
        return {};
    } else if constexpr (knows_stop_token<P>) {
        return stop_token_in(coroutine.promise());
    } else if constexpr (has_environment_with_stop_token<P>) {
        auto environment = coroutine.promise().get_env();
        return stop_token_in(environment);
    } else {
        note_no_stop_token<P>(coroutine.address());
        return {};
    }
}

} // namespace detail

namespace this_task {

namespace detail {

class [[nodiscard("did you forget to co_await?")]] stop_token_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) noexcept {
        token_ = coil::detail::stop_token_of(self);
        return false;
    }
    [[nodiscard]] inplace_stop_token await_resume() const noexcept { return token_; }

    /// Produces a readable compiler error.
    bool stop_requested() const
        COIL_DELETE("await the token: (co_await this_task::stop_token()).stop_requested()");

private:
    inplace_stop_token token_;
};

} // namespace detail

} // namespace this_task

} // namespace coil
