#pragma once

#include <coil/core/config.hpp>
#include <coil/core/task.hpp>
#include <coil/net/inet_address.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace coil::net {

/// The addresses of a host for stream sockets, in the order in which they should be tried (RFC
/// 6724):
///
///     for (const net::inet_address& address : co_await net::resolve("example.org", 80)) ...
///
/// The result is never empty. A numeric address completes immediately. Other names are resolved by
/// getaddrinfo(3), which follows nsswitch.conf(5) and blocks; it therefore runs on a small number
/// of helper threads that exist only while there are look-ups. Further look-ups are queued. In a
/// simulated world (coil::sim) only the names of its hosts and "localhost" exist.
///
/// Errors: std::system_error whose message names the host. Its code is an EAI_* value of
/// resolver_category(), an errno in std::generic_category() if the system failed, or
/// std::errc::operation_canceled if the task was asked to stop.
///
/// Threading: the await resumes on its own context. Cancellation: immediate. getaddrinfo cannot be
/// interrupted: the helper thread that executes it completes the look-up in the background and is
/// occupied until then.
[[nodiscard]] task<std::vector<inet_address>> resolve(std::string host, std::uint16_t port);

/// The same with a service name of services(5) such as "https", or a decimal port number such as
/// "443". Anything else (" 80", "+80", "65536") fails with EAI_SERVICE.
[[nodiscard]] task<std::vector<inet_address>> resolve(std::string host, std::string service);

/// Produces a readable compiler error.
template <std::convertible_to<std::string> Host>
task<std::vector<inet_address>> resolve(Host&&)
    COIL_DELETE("resolve takes the host and the port: resolve(\"example.org\", 443)");

/// The category of EAI_* codes; its messages are those of gai_strerror(3).
[[nodiscard]] const std::error_category& resolver_category() noexcept;

} // namespace coil::net

struct addrinfo;

namespace coil::net::detail {

/// Replaces getaddrinfo(3) for look-ups that begin afterwards, for tests; the results must be
/// allocated by the real getaddrinfo().
using lookup_function = int (*)(const char* host, const char* service, const ::addrinfo* hints,
                                ::addrinfo** results);
lookup_function exchange_lookup_function(lookup_function f) noexcept;

/// The maximum number of helper threads.
inline constexpr unsigned max_lookup_threads = 8;

} // namespace coil::net::detail
