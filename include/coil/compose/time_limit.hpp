#pragma once

#include <coil/compose/child.hpp>
#include <coil/compose/child_group.hpp>
#include <coil/context/multishot.hpp>
#include <coil/context/operation.hpp>
#include <coil/context/sleep.hpp>
#include <coil/context/timer_wheel.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/eager.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

[[noreturn]] void throw_timed_out();

/// A child and the timer that stops it.
template <class Kept>
class time_limit : timer_node, nested_await {
    using child_t = child<Kept>;

public:
    time_limit(std::remove_reference_t<Kept>& awaitable, std::int64_t ns,
               sleep_awaitable::from origin) noexcept
        : timer_node(&expire), group_(child_group::decided_by::first_error),
          child_(group_, awaitable), ns_(ns), origin_(origin) {}
    time_limit(const time_limit&) = delete;
    time_limit& operator=(const time_limit&) = delete;
    ~time_limit() { disarm(); }

    [[nodiscard]] static bool await_ready() noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        group_.begin(waiter, stop_token_of(waiter), *this);
        child_.start();
        if (!group_.must_wait()) {
            return false;
        }
        event_loop& loop = group_.loop();
        const std::int64_t deadline =
            origin_ == sleep_awaitable::from::now ? deadline_after(loop.now_ns(), ns_) : ns_;
        if (!loop.arm(*this, deadline)) {
            outcome_ = outcome::no_memory; // without its limit it would be worse
            group_.overrule(false);
        }
        return true;
    }

    typename child_t::result_type await_resume() {
        disarm();
        group_.resumed();
        if (outcome_ != outcome::in_time) {
            group_.report_error();
            if (outcome_ == outcome::no_memory) {
                throw std::bad_alloc();
            }
            throw_timed_out();
        }
        group_.rethrow();
        return child_.take();
    }

    [[nodiscard]] bool has_failed() const noexcept {
        return outcome_ != outcome::in_time || group_.has_failed();
    }
    void discard() noexcept {
        disarm();
        group_.resumed();
        group_.report_error();
    }

private:
    enum class outcome : unsigned char { in_time, expired, no_memory };

    promise_base* next_below() noexcept final { return child_.below(); }
    void destroy_below(promise_base&) noexcept final { child_.destroy_frame(); }

    static void expire(timer_node& node) noexcept {
        auto& self = static_cast<time_limit&>(node);
        if (!self.group_.is_over()) {
            self.outcome_ = outcome::expired;
            self.group_.overrule(true);
        }
    }
    void disarm() noexcept {
        if (armed()) {
            group_.loop().disarm(*this);
        }
    }

    child_group group_;
    child_t child_;
    std::int64_t ns_;
    sleep_awaitable::from origin_;
    outcome outcome_ = outcome::in_time;
};

template <class T>
inline constexpr bool is_limited_otherwise = is_io_awaitable<T>;
template <class E>
inline constexpr bool is_limited_otherwise<eager_operation<E>> = true;
template <class Stream>
inline constexpr bool is_limited_otherwise<multishot_next<Stream>> = true;

/// What timeout(work, d) limits by a child of its own: tasks and whatever is no ring operation.
template <class A>
concept limited_by_child = awaitable<kept<A>> && !is_limited_otherwise<std::remove_cvref_t<A>>;

} // namespace detail

/// What timeout(work, d) gives when `work` is a task or another awaitable that is no operation: see
/// there.
template <class Kept>
class [[nodiscard("did you forget to co_await?")]] limited_awaitable {
public:
    limited_awaitable(Kept&& awaitable, std::int64_t ns, sleep_awaitable::from origin)
        : awaitable_(static_cast<Kept&&>(awaitable)), ns_(ns), origin_(origin) {}

    [[nodiscard]] detail::time_limit<Kept> operator co_await() && noexcept {
        return detail::time_limit<Kept>(awaitable_, ns_, origin_);
    }
    template <class Self = void>
    detail::time_limit<Kept> operator co_await() & noexcept {
        static_assert(detail::always_false<Self>, "timeout(...) is awaited once: write co_await "
                                                  "std::move(x), or await it directly");
        return detail::time_limit<Kept>(awaitable_, ns_, origin_);
    }

private:
    Kept awaitable_;
    std::int64_t ns_;
    sleep_awaitable::from origin_;
};

/// Limits a task, or anything else that can be awaited and is no operation: a join handle, a
/// when_all.
///
///     auto page = co_await timeout(fetch(url), 3s); // throws std::errc::timed_out
///
/// When the time has passed first, the work is asked to stop and waited for; then a
/// std::system_error with std::errc::timed_out is thrown, however the work has ended: its value is
/// destroyed, an exception of it goes to the context's on_unhandled_exception unless it only says
/// that it was cancelled. Work that ended before gives its own result or exception. The limit
/// counts from the await. Children stay on the context, as in when_all; a join_handle's task is
/// asked to stop, too. No memory for the timer: std::bad_alloc, after the work has been stopped.
template <class A, class Rep, class Period>
    requires detail::limited_by_child<A>
auto timeout(A&& work, std::chrono::duration<Rep, Period> limit) {
    static_assert(detail::can_be_kept<A>, "what cannot be moved is given by its name");
    return limited_awaitable<detail::kept<A>>(std::forward<A>(work), detail::saturated_ns(limit),
                                              sleep_awaitable::from::now);
}

/// The same by a time point. For a clock other than steady_clock the span is computed here.
template <class A, class Clock, class Duration>
    requires detail::limited_by_child<A>
auto timeout_at(A&& work, std::chrono::time_point<Clock, Duration> deadline) {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return limited_awaitable<detail::kept<A>>(std::forward<A>(work),
                                                  detail::saturated_ns(deadline.time_since_epoch()),
                                                  sleep_awaitable::from::epoch);
    } else {
        return timeout(std::forward<A>(work), detail::span_until(deadline));
    }
}

/// Only for the sentences that the compiler says.
template <class A, class Clock, class Duration>
    requires awaitable<detail::kept<A>>
void timeout(A&&, std::chrono::time_point<Clock, Duration>) {
    static_assert(detail::always_false<A>,
                  "this is a time, not a span: write timeout_at(work, time)");
}
template <class A, class Rep, class Period>
    requires awaitable<detail::kept<A>>
void timeout_at(A&&, std::chrono::duration<Rep, Period>) {
    static_assert(detail::always_false<A>, "this is a span, not a time: write timeout(work, span)");
}

} // namespace coil
