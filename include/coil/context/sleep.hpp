#pragma once

#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <type_traits>

namespace coil {

namespace detail {

/// Converts a duration of any unit to nanoseconds, saturating: a very long sleep must not overflow
/// into the past.
template <class Rep, class Period>
constexpr std::int64_t saturated_ns(std::chrono::duration<Rep, Period> d) noexcept {
    using nanoseconds = std::chrono::duration<double, std::nano>;
    constexpr double limit = 9.0e18;
    const double ns = std::chrono::duration_cast<nanoseconds>(d).count();
    if (ns >= limit) {
        return INT64_MAX / 2;
    }
    if (!(ns > 0)) { // also true for NaN
        return 0;
    }
    return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count();
}

/// The time until `tp`. The difference alone could overflow.
template <class Clock, class Duration>
auto span_until(std::chrono::time_point<Clock, Duration> tp) noexcept {
    const auto now = Clock::now();
    using span = decltype(tp - now);
    return tp > now ? tp - now : span::zero();
}

constexpr std::int64_t deadline_after(std::int64_t now_ns, std::int64_t ns) noexcept {
    constexpr std::int64_t latest = INT64_MAX / 2;
    return ns < latest - now_ns ? now_ns + ns : latest;
}

} // namespace detail

namespace detail {

class sleep_awaiter : awaiter_base, timer_node {
public:
    explicit sleep_awaiter(std::int64_t deadline_ns) noexcept : timer_node(&fired) {
        tick = deadline_ns; // the deadline until it is armed, then a tick, then the result
    }
    sleep_awaiter(const sleep_awaiter&) = delete;
    sleep_awaiter& operator=(const sleep_awaiter&) = delete;
    ~sleep_awaiter() {
        if (pending()) [[unlikely]] {
            stop_observing();
            if (pending()) {
                loop().disarm(*this);
            }
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        const inplace_stop_token token = stop_token_of(waiter);
        event_loop& loop = required_loop();
        begin(loop, waiter);
        if (token.stop_requested()) {
            end(-ECANCELED);
        } else if (!loop.arm(*this, tick)) {
            end(-ENOMEM);
        } else {
            observe<sleep_awaiter>(token);
        }
    }

    io_result await_resume() noexcept {
        resumed();
        return io_result(static_cast<int>(tick));
    }

    /// Called instead of await_resume(): the result is not wanted.
    void discard() noexcept { resumed(); }

private:
    friend class awaiter_base;

    void cancel() noexcept {
        if (pending()) {
            loop().disarm(*this);
            end(-ECANCELED);
        }
    }

    static void fired(timer_node& node) noexcept { static_cast<sleep_awaiter&>(node).end(0); }

    void end(int result) noexcept {
        tick = result;
        finish();
    }
};

} // namespace detail

/// The awaitable returned by timeout(d), sleep_for and sleep_until. co_await returns 0 when the
/// time has passed, -ECANCELED if the task was asked to stop, -ENOMEM if there was no memory for
/// timers.
class [[nodiscard("did you forget to co_await?")]] sleep_awaitable {
public:
    enum class from { now, epoch };

    sleep_awaitable(std::int64_t ns, from origin) noexcept : ns_(ns), origin_(origin) {}

    detail::sleep_awaiter operator co_await() const noexcept {
        detail::event_loop& loop = detail::required_loop();
        return detail::sleep_awaiter(
            origin_ == from::now ? detail::deadline_after(loop.now_ns(), ns_) : ns_);
    }

private:
    std::int64_t ns_;
    from origin_;
};

/// Sleeps for a duration. Never ends early. It ends at most 33 µs late by rounding (see
/// timer_wheel), or 100 µs if timers are so dense that they share wake-ups, plus the time until the
/// context processes its timers. A negative duration ends in the next turn of the loop.
///
///     co_await sleep_for(100ms);
template <class Rep, class Period>
sleep_awaitable sleep_for(std::chrono::duration<Rep, Period> d) noexcept {
    return {detail::saturated_ns(d), sleep_awaitable::from::now};
}

/// Sleeps until a time point of any clock. For a clock other than steady_clock the duration is
/// computed when the sleep is awaited; setting that clock later has no effect.
template <class Clock, class Duration>
sleep_awaitable sleep_until(std::chrono::time_point<Clock, Duration> tp) noexcept {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return {detail::saturated_ns(tp.time_since_epoch()), sleep_awaitable::from::epoch};
    } else {
        return sleep_for(detail::span_until(tp));
    }
}

/// sleep_for under the name that also limits operations: `co_await timeout(1s)`.
template <class Rep, class Period>
sleep_awaitable timeout(std::chrono::duration<Rep, Period> d) noexcept {
    return sleep_for(d);
}

/// Produces a readable compiler error.
template <class Number>
    requires std::is_arithmetic_v<Number>
sleep_awaitable sleep_for(Number) noexcept {
    static_assert(detail::always_false<Number>, "how long is a duration: sleep_for(3s)");
    return {0, sleep_awaitable::from::now};
}
template <class Number>
    requires std::is_arithmetic_v<Number>
sleep_awaitable timeout(Number) noexcept {
    static_assert(detail::always_false<Number>, "how long is a duration: timeout(3s)");
    return {0, sleep_awaitable::from::now};
}
template <class Work, class Number>
    requires std::is_arithmetic_v<Number>
sleep_awaitable timeout(Work&&, Number) noexcept {
    static_assert(detail::always_false<Number>, "a limit is a duration: timeout(op, 3s)");
    return {0, sleep_awaitable::from::now};
}

/// sleep_until under the name that also limits operations.
template <class Clock, class Duration>
sleep_awaitable timeout_at(std::chrono::time_point<Clock, Duration> tp) noexcept {
    return sleep_until(tp);
}

} // namespace coil
