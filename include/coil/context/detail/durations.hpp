#pragma once

#include <coil/base/std_chrono.hpp>

#include <cstdint>

namespace coil::detail {

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

/// The time until `tp`, or zero if it has passed: the plain difference could overflow.
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

} // namespace coil::detail
