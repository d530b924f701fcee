#pragma once

#include <coil/compose/detail/child.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// Awaits `Kept` with a promise that has no stop token.
template <class Kept>
class shielded_await {
    using awaiter_t = awaiter_of<Kept&&>;
    using awaiter_object = std::remove_reference_t<awaiter_t>;

    // Tasks and generators start a coroutine, so they need the root of the awaiting coroutine.
    static constexpr bool starts_below = requires(awaiter_object& a, std::coroutine_handle<> h,
                                                  const stop_detour& d) { a.start(h, d); };

public:
    explicit shielded_await(std::remove_reference_t<Kept>& awaitable)
        : awaiter_(get_awaiter(static_cast<Kept&&>(awaitable))) {}
    shielded_await(const shielded_await&) = delete;
    shielded_await& operator=(const shielded_await&) = delete;
    ~shielded_await() = default;

    [[nodiscard]] bool await_ready() noexcept(noexcept(std::declval<awaiter_t&>().await_ready())) {
        return awaiter_.await_ready();
    }

    template <class P>
    auto await_suspend(std::coroutine_handle<P> waiter) {
        if constexpr (starts_below) {
            if constexpr (std::derived_from<P, promise_base>) {
                detour_.root = waiter.promise().root();
            }
            return awaiter_.start(waiter, std::as_const(detour_));
        } else {
            // a handle without a promise type, in which the awaiter finds no stop token
            return awaiter_.await_suspend(std::coroutine_handle<>(waiter));
        }
    }

    decltype(auto) await_resume() noexcept(noexcept(std::declval<awaiter_t&>().await_resume())) {
        return awaiter_.await_resume();
    }

    void expect_discard()
        requires requires(awaiter_object& a) { a.expect_discard(); }
    {
        awaiter_.expect_discard();
    }
    [[nodiscard]] bool has_failed() noexcept
        requires knows_failure<awaiter_object>
    {
        return awaiter_.has_failed();
    }
    void discard() noexcept
        requires requires(awaiter_object& a) { a.discard(); }
    {
        discard_result<Kept>(awaiter_);
    }

private:
    struct nothing {};

    awaiter_t awaiter_;
    [[no_unique_address]] std::conditional_t<starts_below, stop_detour, nothing> detour_{};
};

} // namespace coil::detail
