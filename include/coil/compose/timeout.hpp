#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/compose/detail/timed_element.hpp>
#include <coil/context/operation.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/task.hpp>
#include <coil/io/eager.hpp>

#include <utility>

namespace coil {

/// Limits the duration of an operation or a chain.
///
///     int n = co_await timeout(sock.recv(buf), 3s); // -ETIMEDOUT when the limit expires
///
/// When the limit expires first, the operation is cancelled and returns -ETIMEDOUT; an operation
/// that completes while it is being cancelled returns its real result. In both cases the kernel no
/// longer uses its buffers. If a stop request comes first, it returns -ECANCELED; so does an
/// operation that is cancelled because there is no memory for its timer. The limit counts from the
/// start of the operation; for a limited operation inside a chain, from when the kernel starts it.
/// A chain that ends because such a limit has expired returns -ETIMEDOUT.
template <ring_operation Op, class Rep, class Period>
auto timeout(Op op COIL_LIFETIMEBOUND, std::chrono::duration<Rep, Period> limit) noexcept {
    using element = typename Op::element_type;
    static_assert(!detail::is_timed<element>, "this operation is limited already");
    return io_awaitable<detail::timed_element<element>>(detail::timed_element<element>(
        std::move(op).take_element(), detail::saturated_ns(limit), sleep_awaitable::from::now));
}

/// Limits an operation by a time point, see timeout(op, d). For a clock other than steady_clock the
/// duration is computed when this is called; setting that clock later has no effect.
template <ring_operation Op, class Clock, class Duration>
auto timeout_at(Op op COIL_LIFETIMEBOUND,
                std::chrono::time_point<Clock, Duration> deadline) noexcept {
    using element = typename Op::element_type;
    static_assert(!detail::is_timed<element>, "this operation is limited already");
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return io_awaitable<detail::timed_element<element>>(detail::timed_element<element>(
            std::move(op).take_element(), detail::saturated_ns(deadline.time_since_epoch()),
            sleep_awaitable::from::epoch));
    } else {
        return timeout(std::move(op), detail::span_until(deadline));
    }
}

/// Produce readable compiler errors.
template <detail::element E, class Rep, class Period>
void timeout(io_awaitable<E>&, std::chrono::duration<Rep, Period>)
    COIL_DELETE("an operation is awaited once: limit a temporary, or std::move() the operation");
template <detail::element E, class Clock, class Duration>
void timeout_at(io_awaitable<E>&, std::chrono::time_point<Clock, Duration>)
    COIL_DELETE("an operation is awaited once: limit a temporary, or std::move() the operation");
template <detail::element E, class Rep, class Period>
void timeout(const eager_operation<E>&, std::chrono::duration<Rep, Period>)
    COIL_DELETE("this operation has already started: limit it before that, eager(timeout(op, d))");
template <detail::element E, class Clock, class Duration>
void timeout_at(const eager_operation<E>&, std::chrono::time_point<Clock, Duration>) COIL_DELETE(
    "this operation has already started: limit it before that, eager(timeout_at(op, time))");

} // namespace coil
