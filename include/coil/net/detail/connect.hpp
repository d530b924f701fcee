#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/core/task.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/socket.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coil::net::detail {

/// No deadline. Deadlines are steady-clock nanoseconds.
inline constexpr std::int64_t no_deadline = INT64_MAX;

/// See net::connect.
[[nodiscard]] task<socket> connect_by(std::string host, std::uint16_t port,
                                      std::int64_t deadline_ns);
[[nodiscard]] task<socket> connect_within(std::string host, std::uint16_t port, std::int64_t ns);

/// The same with resolved addresses; `name` is for messages.
[[nodiscard]] task<socket> connect_to_any(std::string name, std::vector<inet_address> addresses,
                                          std::int64_t deadline_ns);

/// Sorts addresses as described in RFC 8305, section 4: the families alternate, IPv6 first, and
/// each family keeps its order.
[[nodiscard]] std::vector<inet_address> interleave(const std::vector<inet_address>& addresses);

/// RFC 8305, section 5, "Connection Attempt Delay".
inline constexpr std::chrono::milliseconds connection_attempt_delay{250};

} // namespace coil::net::detail
