#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/task.hpp>
#include <coil/net/detail/connect.hpp>
#include <coil/net/socket.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace coil::net {

/// Connects to a host over TCP as RFC 8305 ("Happy Eyeballs") describes. The host's addresses are
/// tried in an order that alternates between the families, IPv6 first. The next attempt begins when
/// the previous one fails, or after 250 ms. The first established connection is returned, after the
/// other attempts have been cancelled and closed.
///
///     net::socket s = co_await net::connect("example.org", 443);
///     net::socket t = co_await net::connect("example.org", 443, 5s);
///
/// Errors: std::system_error whose message names the host, the port, and why each attempt failed;
/// the code is that of the last failure, timed_out if the limit expired, or that of net::resolve.
///
/// Cancellation: std::errc::operation_canceled; every socket is closed.
[[nodiscard]] COIL_CORO_WRAPPER task<socket> connect(std::string host, std::uint16_t port);

/// The same with a time limit, which includes the name look-up.
template <class Rep, class Period>
[[nodiscard]] COIL_CORO_WRAPPER task<socket> connect(std::string host, std::uint16_t port,
                                                     std::chrono::duration<Rep, Period> limit) {
    return detail::connect_within(std::move(host), port, coil::detail::saturated_ns(limit));
}

/// The same with a deadline.
template <class Clock, class Duration>
[[nodiscard]] COIL_CORO_WRAPPER task<socket>
connect(std::string host, std::uint16_t port, std::chrono::time_point<Clock, Duration> deadline) {
    if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
        return detail::connect_by(std::move(host), port,
                                  coil::detail::saturated_ns(deadline.time_since_epoch()));
    } else {
        return connect(std::move(host), port, deadline - Clock::now());
    }
}

/// Produces a readable compiler error.
template <class Host>
[[nodiscard]] task<socket> connect(Host&&)
    COIL_DELETE("connect takes the host and the port: connect(\"example.org\", 443)");
template <std::convertible_to<std::string> Host, std::convertible_to<std::string> Service,
          class... Rest>
[[nodiscard]] task<socket> connect(Host&&, Service&&, Rest&&...)
    COIL_DELETE("the port is a number: connect(\"example.org\", 443)");
template <std::convertible_to<std::string> Host, std::integral Port, class Limit>
    requires std::is_arithmetic_v<Limit>
[[nodiscard]] task<socket> connect(Host&&, Port, Limit)
    COIL_DELETE("pass the limit as a duration with a unit: connect(\"example.org\", 443, 5s)");

template <std::integral Port, std::convertible_to<std::string> Host, class... Rest>
[[nodiscard]] task<socket> connect(Port, Host&&, Rest&&...)
    COIL_DELETE("the host comes before the port: connect(\"example.org\", 443)");

} // namespace coil::net
