#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/durations.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/sleep_awaiter.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>

#include <cstdint>
#include <type_traits>

namespace coil {

/// The awaitable returned by timeout(d), sleep_for and sleep_until. co_await returns 0 when the
/// time has passed, -ECANCELED if the task was asked to stop, -ENOMEM if there was no memory for
/// timers.
class [[nodiscard("did you forget to co_await?")]] sleep_awaitable
    : public detail::not_its_result<sleep_awaitable> {
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

/// Sleeps for a duration. Never ends early. It ends at most 33 µs late because of rounding (see
/// timer_wheel), plus up to io_context_options::timer_slack if timers are so dense that they share
/// wake-ups, plus the time until the context processes its timers. A negative duration ends in the
/// next turn of the loop.
///
///     co_await sleep_for(100ms);
template <class Rep, class Period>
sleep_awaitable sleep_for(std::chrono::duration<Rep, Period> d) noexcept {
    return {detail::saturated_ns(d), sleep_awaitable::from::now};
}

/// Sleeps until a time point of any clock. For a clock other than steady_clock this call computes
/// the duration, which then begins at the await; setting that clock later has no effect.
template <class Clock, class Duration>
sleep_awaitable sleep_until(std::chrono::time_point<Clock, Duration> tp) noexcept {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return {detail::saturated_ns(tp.time_since_epoch()), sleep_awaitable::from::epoch};
    } else {
        return sleep_for(detail::span_until(tp));
    }
}

/// Another name for sleep_for(): `co_await timeout(1s)`. With an operation, timeout() limits it.
template <class Rep, class Period>
sleep_awaitable timeout(std::chrono::duration<Rep, Period> d) noexcept {
    return sleep_for(d);
}

/// Produce readable compiler errors.
template <class Number>
    requires std::is_arithmetic_v<Number> || std::is_convertible_v<Number, const char*>
sleep_awaitable sleep_for(Number) COIL_DELETE("pass a duration with a unit: sleep_for(3s)");
template <class Rep, class Period>
sleep_awaitable sleep_until(std::chrono::duration<Rep, Period>)
    COIL_DELETE("this is a duration, not a time point: write sleep_for(duration)");
template <class Clock, class Duration>
sleep_awaitable sleep_for(std::chrono::time_point<Clock, Duration>)
    COIL_DELETE("this is a time point, not a duration: write sleep_until(time)");
template <class Number>
    requires std::is_arithmetic_v<Number>
sleep_awaitable timeout(Number) COIL_DELETE("pass a duration with a unit: timeout(3s)");
template <class Work, class Number>
    requires std::is_arithmetic_v<Number>
sleep_awaitable timeout(Work&&, Number)
    COIL_DELETE("pass the limit as a duration with a unit: timeout(op, 3s)");

/// Another name for sleep_until(). With an operation, timeout_at() limits it.
template <class Clock, class Duration>
sleep_awaitable timeout_at(std::chrono::time_point<Clock, Duration> tp) noexcept {
    return sleep_until(tp);
}

} // namespace coil
