#pragma once

#include <coil/compose/child.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

/// Awaits as if the awaiting coroutine had no stop token.
template <class Kept>
class shielded_await {
    using awaiter_t = awaiter_of<Kept&&>;
    using awaiter_object = std::remove_reference_t<awaiter_t>;

    // Tasks and generators, which start a coroutine: they are told the root of what awaits them.
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
            return awaiter_.await_suspend(std::coroutine_handle<>(waiter)); // of an unknown kind
        }
    }

    decltype(auto) await_resume() noexcept(noexcept(std::declval<awaiter_t&>().await_resume())) {
        return awaiter_.await_resume();
    }

    [[nodiscard]] bool has_failed() noexcept
        requires knows_failure<awaiter_object>
    {
        return awaiter_.has_failed();
    }
    void discard() noexcept
        requires requires(awaiter_object& a) { a.discard(); }
    {
        give_up<Kept>(awaiter_);
    }

private:
    struct nothing {};

    awaiter_t awaiter_;
    [[no_unique_address]] std::conditional_t<starts_below, stop_detour, nothing> detour_{};
};

} // namespace detail

/// What shield(work) gives: see there.
template <class Kept>
class [[nodiscard("did you forget to co_await?")]] shielded_awaitable {
public:
    explicit shielded_awaitable(Kept&& awaitable) : awaitable_(static_cast<Kept&&>(awaitable)) {}

    [[nodiscard]] detail::shielded_await<Kept> operator co_await() && {
        return detail::shielded_await<Kept>(awaitable_);
    }
    template <class Self = void>
    detail::shielded_await<Kept> operator co_await() & {
        static_assert(detail::always_false<Self>, "shield(...) is awaited once: write co_await "
                                                  "std::move(x), or await it directly");
        return detail::shielded_await<Kept>(awaitable_);
    }

private:
    Kept awaitable_;
};

/// Awaits something that a stop of the awaiting task does not reach: a task below gets a token that
/// nobody asks to stop, an operation is not cancelled.
///
///     co_await shield(write_footer(file)); // also when this task has been cancelled
///
/// Whoever waits for the shielded work waits until it has ended: a when_any for its losers, a
/// timeout for what it limits. Destroying the awaiting frame, as a shutdown does, destroys what is
/// shielded, too.
template <class A>
    requires awaitable<detail::kept<A>>
auto shield(A&& work) {
    static_assert(detail::can_be_kept<A>, "what cannot be moved is given by its name: auto x = "
                                          "eager(op); shield(x)");
    return shielded_awaitable<detail::kept<A>>(std::forward<A>(work));
}

} // namespace coil
