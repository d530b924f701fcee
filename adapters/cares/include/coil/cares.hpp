#pragma once

/// coil::cares: name resolution with c-ares.

#include <coil/core/task.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/socket.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace coil::cares {

namespace detail {
class channel;
}

/// Options of a resolver.
struct resolver_options {
    /// The servers to query; empty: those of /etc/resolv.conf, which is read by the constructor.
    std::vector<net::inet_address> servers{};
    std::chrono::milliseconds timeout{2000}; ///< of the first try; later ones wait longer
    int tries = 3;                           ///< of each server
    bool hosts_file = true;                  ///< look in /etc/hosts first
};

/// Resolves names over DNS without threads: the counterpart of net::resolve(), which runs
/// getaddrinfo(3) on helper threads.
///
///     cares::resolver names;
///     for (const net::inet_address& a : co_await names.resolve("example.org", 80)) ...
///     net::socket s = co_await timeout(names.connect("example.org", 443), 5s);
///
/// It follows /etc/hosts and /etc/resolv.conf, not the other sources of nsswitch.conf(5). IPv4 and
/// IPv6 addresses are queried at the same time; answers that do not fit into a datagram are fetched
/// over TCP. Nothing is cached.
///
/// Errors: std::system_error whose message names the host, with a code of cares::category(), or
/// std::errc::operation_canceled.
///
/// Threading: one context, on which it is also destroyed. It runs a task of its own there. Any
/// number of tasks may use it at the same time.
///
/// Cancellation: immediate. c-ares completes the query in the background, and the answer is
/// discarded. The frame of an awaiting task may be destroyed at any time.
///
/// Lifetime: destroying it makes the look-ups in progress fail with ARES_EDESTRUCTION.
class resolver {
public:
    /// Throws std::system_error if c-ares cannot be initialized.
    explicit resolver(const resolver_options& options = {});
    resolver(resolver&&) noexcept;
    resolver& operator=(resolver&&) noexcept;
    ~resolver();

    /// The addresses of a host for stream sockets in the order in which they should be tried (RFC
    /// 6724); never empty. A numeric address completes immediately.
    [[nodiscard]] task<std::vector<net::inet_address>> resolve(std::string host,
                                                               std::uint16_t port);
    /// The same with a service name of services(5) such as "https", or a decimal port number.
    /// Anything else fails with ARES_ESERVICE.
    [[nodiscard]] task<std::vector<net::inet_address>> resolve(std::string host,
                                                               std::string service);

    /// Like net::connect(), but resolves the name with this resolver.
    [[nodiscard]] task<net::socket> connect(std::string host, std::uint16_t port);

private:
    std::shared_ptr<detail::channel> channel_;
};

/// The category of the ARES_* codes; its messages are those of ares_strerror(). ARES_ETIMEOUT
/// equals std::errc::timed_out, ARES_ECONNREFUSED std::errc::connection_refused, ARES_ENOMEM
/// std::errc::not_enough_memory.
[[nodiscard]] const std::error_category& category() noexcept;

} // namespace coil::cares
