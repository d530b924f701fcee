#pragma once

#include <coil/core/task.hpp>
#include <coil/net/inet_address.hpp>

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace coil::net {

/// The addresses of a host, in the order in which they should be tried (RFC 6724), for stream
/// sockets:
///
///     for (const net::inet_address& address : co_await net::resolve("example.org", 80)) ...
///
/// Never empty. A numeric address is answered at once. Every other name goes to getaddrinfo(3),
/// which follows nsswitch.conf(5) and blocks; so it runs on a helper thread, of which there are a
/// few and only while there are look-ups. A look-up beyond that number waits its turn. (A later
/// version may offer c-ares instead; the contract here stays.) In a simulated world (coil::sim) the
/// names are those of its hosts, and "localhost".
///
/// Errors: std::system_error whose message names the host. Its code is an EAI_* value in
/// resolver_category(), or an errno in std::generic_category() when the system failed, or
/// std::errc::operation_canceled when the task was asked to stop meanwhile.
///
/// Threading: the await resumes on its own context. Cancellation: at once. getaddrinfo cannot be
/// interrupted: its thread finishes unobserved, and until then counts as one of the few.
[[nodiscard]] task<std::vector<inet_address>> resolve(std::string host, std::uint16_t port);

/// The same with the port by its name in services(5), "https", or as a number, "443": digits
/// alone. What is no port (" 80", "+80", "65536") is EAI_SERVICE.
[[nodiscard]] task<std::vector<inet_address>> resolve(std::string host, std::string service);

/// The category of EAI_* codes; messages are gai_strerror(3)'s.
[[nodiscard]] const std::error_category& resolver_category() noexcept;

} // namespace coil::net

struct addrinfo;

namespace coil::net::detail {

/// getaddrinfo(3), or what a test puts in its place; its results must come from the real one.
/// Look-ups that begin afterwards use it.
using lookup_function = int (*)(const char* host, const char* service, const ::addrinfo* hints,
                                ::addrinfo** results);
lookup_function exchange_lookup_function(lookup_function f) noexcept;

/// Helper threads at most.
inline constexpr unsigned max_lookup_threads = 8;

} // namespace coil::net::detail
