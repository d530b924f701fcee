#pragma once

#include <coil/core/config.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/unix_address.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace coil::net {

/// An IPv4, IPv6 or Unix domain address that a socket is bound or connected to. A value type.
///
///     net::acceptor web{8080};                              // any local address
///     net::acceptor local{"127.0.0.1:8080"};
///     net::acceptor control{net::unix_address{"/run/app"}};
///
/// It converts implicitly from a port, a text, an inet_address and a unix_address, so every
/// function that takes an endpoint accepts these.
class endpoint {
public:
    /// No address: AF_UNSPEC.
    endpoint() noexcept = default;

    /// Any local IPv4 address: for servers.
    endpoint(std::uint16_t port) noexcept;          // NOLINT(google-explicit-constructor)
    endpoint(const inet_address& address) noexcept; // NOLINT(google-explicit-constructor)
    endpoint(const unix_address& address) noexcept; // NOLINT(google-explicit-constructor)
    /// A numeric address: {"127.0.0.1", 80}, {"::1", 80}, {"fe80::1%eth0", 80}. Throws as
    /// inet_address does.
    endpoint(std::string_view ip, std::uint16_t port);

    /// Produces a readable compiler error.
    template <std::convertible_to<std::string_view> Port>
    endpoint(std::string_view, const Port&)
        COIL_DELETE("the port is a number: endpoint(\"127.0.0.1\", 80)");

    /// Any text that parse() accepts. Otherwise throws std::system_error with
    /// std::errc::invalid_argument and a message that quotes the text.
    template <std::convertible_to<std::string_view> Text>
    endpoint(const Text& text) // NOLINT(google-explicit-constructor)
        : endpoint(text_tag{}, std::string_view(text)) {}

    /// Converts from a sockaddr. Throws std::system_error (address_family_not_supported) for other
    /// families. AF_UNSPEC or a length of 0 yields an endpoint without an address.
    endpoint(const ::sockaddr* address, ::socklen_t length);

    /// Parses "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/run/x" or "unix:@name"
    /// (abstract); nullopt for anything else. Never resolves names.
    static std::optional<endpoint> parse(std::string_view text) noexcept;

    /// The text that parse() reads. Without an address "", for an unnamed Unix socket "unix:",
    /// which parse() refuses.
    [[nodiscard]] std::string to_string() const;

    /// AF_INET, AF_INET6, AF_UNIX, or AF_UNSPEC.
    [[nodiscard]] int family() const noexcept { return storage_.generic.sa_family; }
    [[nodiscard]] bool is_inet() const noexcept {
        return family() == AF_INET || family() == AF_INET6;
    }
    [[nodiscard]] bool is_unix() const noexcept { return family() == AF_UNIX; }
    /// The port of an internet address, otherwise 0.
    [[nodiscard]] std::uint16_t port() const noexcept;

    /// Converts to an address of one family. Throws std::system_error
    /// (address_family_not_supported) if the endpoint is of another.
    [[nodiscard]] inet_address as_inet() const;
    [[nodiscard]] unix_address as_unix() const;

    /// The sockaddr and its length, for system calls.
    [[nodiscard]] const ::sockaddr* data() const noexcept { return &storage_.generic; }
    [[nodiscard]] ::socklen_t size() const noexcept { return size_; }

    /// Same family and same address: see inet_address and unix_address.
    friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

private:
    struct text_tag {};
    endpoint(text_tag tag, std::string_view text);

    union {
        ::sockaddr generic;
        ::sockaddr_in v4;
        ::sockaddr_in6 v6;
        ::sockaddr_un local;
    } storage_{};
    ::socklen_t size_ = sizeof(::sa_family_t);
};

} // namespace coil::net
