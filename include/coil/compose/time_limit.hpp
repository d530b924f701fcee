#pragma once

#include <coil/compose/child.hpp>
#include <coil/compose/child_group.hpp>
#include <coil/context/multishot.hpp>
#include <coil/context/operation.hpp>
#include <coil/context/sleep.hpp>
#include <coil/context/timer_wheel.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/eager.hpp>

#include <cerrno>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

[[noreturn]] void throw_timed_out();

/// What timeout(work, d) returns when the limit has expired and `work` gives a T; no member: it
/// throws. `completed` is what the work returned all the same, or null.
template <class T>
struct expired_result {};
template <>
struct expired_result<io_result> {
    static io_result make(io_result*) noexcept { return io_result(-ETIMEDOUT); }
};
template <class T>
concept has_expired_result = requires(T* completed) {
    { expired_result<T>::make(completed) } -> std::same_as<T>;
};

/// A child and the timer that stops it.
template <class Kept>
class time_limit : timer_node, nested_await {
    using child_t = child<Kept>;
    using result_type = typename child_t::result_type;

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
        event_loop& loop = group_.loop();
        const std::int64_t deadline =
            origin_ == sleep_awaitable::from::now ? deadline_after(loop.now_ns(), ns_) : ns_;
        group_.set_deadline(deadline);
        child_.start();
        if (!group_.must_wait()) {
            return false;
        }
        if (!loop.arm(*this, deadline)) {
            outcome_ = outcome::no_memory; // without its limit it would be worse
            group_.overrule(false);
        }
        return true;
    }

    result_type await_resume() {
        disarm();
        group_.resumed();
        if (outcome_ == outcome::in_time) [[likely]] {
            group_.rethrow();
            return child_.take();
        }
        if (outcome_ == outcome::no_memory) {
            group_.report_error();
            throw std::bad_alloc();
        }
        if constexpr (has_expired_result<result_type>) {
            if (group_.has_failed()) {
                group_.report_error();
                return expired_result<result_type>::make(nullptr);
            }
            result_type completed = child_.take();
            return expired_result<result_type>::make(&completed);
        } else {
            group_.report_error();
            throw_timed_out();
        }
    }

    /// Whether await_resume() throws.
    [[nodiscard]] bool has_failed() const noexcept {
        if (outcome_ == outcome::expired) {
            return !has_expired_result<result_type>;
        }
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
            if constexpr (has_expired_result<result_type>) {
                self.group_.expire();
            } else {
                self.group_.overrule(true);
            }
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

/// Limits a task, or any other awaitable that is not an operation: a join handle, a when_all.
///
///     int n = co_await timeout(peer.send_all(data), 3s); // an io_result: -ETIMEDOUT
///     auto page = co_await timeout(fetch(url), 3s);      // a value: throws std::errc::timed_out
///
/// When the limit expires first, the work is asked to stop and awaited. Then work that gives an
/// io_result yields -ETIMEDOUT, and an accept() yields a net::socket whose error() is
/// std::errc::timed_out, unless it got a connection all the same. Other work throws a
/// std::system_error with std::errc::timed_out. However the work has ended, its value is destroyed,
/// and its exception goes to the context's on_unhandled_exception unless it only reports a
/// cancellation. Work that ends in time gives its own result or exception. The limit counts from
/// the await. A join_handle's task is asked to stop as well. When there is no memory for the timer,
/// the work is stopped and std::bad_alloc is thrown.
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

/// timeout_at(work, deadline) with the arguments in the order of a scope: `work` runs under a limit
/// that everything below it inherits. this_task::deadline() tells when it expires.
///
///     co_await with_deadline(std::chrono::steady_clock::now() + 3s, handle(request));
template <class Clock, class Duration, class A>
auto with_deadline(std::chrono::time_point<Clock, Duration> deadline, A&& work) {
    return timeout_at(std::forward<A>(work), deadline);
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

namespace this_task {

namespace detail {

class [[nodiscard("did you forget to co_await?")]] deadline_awaiter {
public:
    using time_point = std::chrono::steady_clock::time_point;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) noexcept {
        using coil::detail::root_observer;
        if (coil::detail::promise_base* const root = coil::detail::nearest_root(self)) {
            ns_ = root->is_root() ? root->observer().deadline() : root_observer::no_deadline;
        }
        return false;
    }
    [[nodiscard]] std::optional<time_point> await_resume() const noexcept {
        if (ns_ == coil::detail::root_observer::no_deadline) {
            return std::nullopt;
        }
        return time_point(std::chrono::nanoseconds(ns_));
    }

private:
    std::int64_t ns_ = coil::detail::root_observer::no_deadline;
};

} // namespace detail

/// When the earliest limit expires that this task is under: those of timeout(task, d) and
/// with_deadline() around it, through when_all, when_any, on(), and scopes and supervisors that are
/// being joined. None for a spawned task, which inherits none. Does not suspend.
///
///     if (auto limit = co_await this_task::deadline())
///         request.set_header("grpc-timeout", *limit - std::chrono::steady_clock::now());
inline detail::deadline_awaiter deadline() noexcept { return {}; }

} // namespace this_task

} // namespace coil
