#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/compose/detail/child.hpp>
#include <coil/compose/detail/explain_child.hpp>
#include <coil/compose/detail/limited_child.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/eager.hpp>

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

/// The awaitable returned by timeout(work, d) for work that is not a ring operation.
template <class Kept>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED limited_awaitable
    : public detail::not_its_result<limited_awaitable<Kept>> {
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

/// Limits the duration of a task or of any other awaitable that is not a ring operation, such as a
/// join_handle or a when_all.
///
///     int n = co_await timeout(peer.send_all(data), 3s); // an io_result: -ETIMEDOUT
///     auto page = co_await timeout(fetch(url), 3s);      // a value: throws std::errc::timed_out
///
/// When the limit expires first, the work is asked to stop and waited for. Work that returns an
/// io_result then yields -ETIMEDOUT. An accept() yields a net::socket whose error() is
/// std::errc::timed_out, unless it got a connection before it was cancelled. For all other work
/// co_await throws std::system_error with std::errc::timed_out. The work's own value is destroyed,
/// and its exception goes to the context's on_unhandled_exception unless it only reports the
/// cancellation.
///
/// Work that ends before the limit returns its own result or exception. The limit counts from the
/// co_await. As with when_all, the work must stay on its context, and the task of a limited
/// join_handle is asked to stop as well. If there is no memory for the timer, the work is asked to
/// stop and waited for, and the await throws std::bad_alloc.
template <class A, class Rep, class Period>
    requires detail::limited_by_child<A>
auto timeout(A&& work, std::chrono::duration<Rep, Period> limit) {
    static_assert(detail::can_be_kept<A>, "an awaitable that cannot be moved is passed by name");
    return limited_awaitable<detail::kept<A>>(std::forward<A>(work), detail::saturated_ns(limit),
                                              sleep_awaitable::from::now);
}

/// The same with a time point. For a clock other than steady_clock the duration is computed when
/// this is called.
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

#if defined(COIL_CHECK_LIFETIMES)
/// The same for tasks. They are passed by value, so that the compiler can check lifetimes.
template <class T, class Rep, class Period>
COIL_CORO_COPIES auto timeout(task<T> work COIL_LIFETIMEBOUND,
                              std::chrono::duration<Rep, Period> limit) {
    return limited_awaitable<task<T>>(std::move(work), detail::saturated_ns(limit),
                                      sleep_awaitable::from::now);
}
template <class T, class Clock, class Duration>
COIL_CORO_COPIES auto timeout_at(task<T> work COIL_LIFETIMEBOUND,
                                 std::chrono::time_point<Clock, Duration> deadline) {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return limited_awaitable<task<T>>(std::move(work),
                                          detail::saturated_ns(deadline.time_since_epoch()),
                                          sleep_awaitable::from::epoch);
    } else {
        return timeout(std::move(work), detail::span_until(deadline));
    }
}
template <class Clock, class Duration, class T>
COIL_CORO_COPIES auto with_deadline(std::chrono::time_point<Clock, Duration> deadline,
                                    task<T> work COIL_LIFETIMEBOUND) {
    return timeout_at(std::move(work), deadline);
}
template <class Kept>
inline constexpr bool detail::checked_by_value<limited_awaitable<Kept>> = true;
#endif

/// timeout_at(work, deadline) with the arguments in the other order: `work` runs under a limit that
/// everything below it inherits. this_task::deadline() returns it.
///
///     co_await with_deadline(std::chrono::steady_clock::now() + 3s, handle(request));
template <class Clock, class Duration, class A>
auto with_deadline(std::chrono::time_point<Clock, Duration> deadline, A&& work) {
    return timeout_at(std::forward<A>(work), deadline);
}

/// Produce readable compiler errors.
template <class A, class Clock, class Duration>
    requires awaitable<detail::kept<A>>
void timeout(A&&, std::chrono::time_point<Clock, Duration>)
    COIL_DELETE("this is a time point, not a duration: write timeout_at(work, time)");
template <class A, class Rep, class Period>
    requires awaitable<detail::kept<A>>
void timeout_at(A&&, std::chrono::duration<Rep, Period>)
    COIL_DELETE("this is a duration, not a time point: write timeout(work, duration)");

template <class A, class Rep, class Period>
    requires(!awaitable<detail::kept<A>>)
limited_awaitable<sleep_awaitable> timeout(A&&, std::chrono::duration<Rep, Period>)
    COIL_EXPLAIN_CHILDREN(A) {
    detail::explain_child<A>();
}
template <class Rep, class Period, class A>
    requires awaitable<detail::kept<A>>
limited_awaitable<sleep_awaitable> timeout(std::chrono::duration<Rep, Period>, A&&)
    COIL_DELETE("the work comes first: timeout(work, 3s)");
template <class Rep, class Period, class A>
limited_awaitable<sleep_awaitable> with_deadline(std::chrono::duration<Rep, Period>, A&&)
    COIL_DELETE("this is a duration, not a time point: write timeout(work, duration)");
template <class A, class Clock, class Duration>
    requires awaitable<detail::kept<A>>
limited_awaitable<sleep_awaitable> with_deadline(A&&, std::chrono::time_point<Clock, Duration>)
    COIL_DELETE("the time point comes first: with_deadline(time, work)");

template <class A>
    requires awaitable<detail::kept<A>>
limited_awaitable<sleep_awaitable> timeout(A&&) COIL_DELETE("pass the limit: timeout(work, 3s)");
template <class A, std::convertible_to<const char*> Text>
    requires awaitable<detail::kept<A>>
limited_awaitable<sleep_awaitable> timeout(A&&, Text&&)
    COIL_DELETE("pass the limit as a duration: timeout(work, 3s)");

namespace this_task {

namespace detail {

class [[nodiscard("did you forget to co_await?")]] deadline_awaiter {
public:
    using time_point = std::chrono::steady_clock::time_point;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) noexcept {
        using coil::detail::task_owner;
        if (coil::detail::promise_base* const root = coil::detail::nearest_root(self)) {
            ns_ = root->is_root() ? root->owner().deadline() : task_owner::no_deadline;
        }
        return false;
    }
    [[nodiscard]] std::optional<time_point> await_resume() const noexcept;

private:
    std::int64_t ns_ = coil::detail::task_owner::no_deadline;
};

} // namespace detail

/// co_await returns the time at which the earliest limit around this task expires, or nullopt if
/// there is none, without suspending. Limits are those of timeout(task, d) and with_deadline(),
/// inherited through when_all, when_any, on(), and scopes and supervisors that are being joined. A
/// spawned task inherits none.
///
///     if (auto limit = co_await this_task::deadline())
///         request.set_header("grpc-timeout", *limit - std::chrono::steady_clock::now());
inline detail::deadline_awaiter deadline() noexcept { return {}; }

} // namespace this_task

} // namespace coil
