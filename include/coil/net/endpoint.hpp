#pragma once

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

/// Where a socket is bound or connected to: an address of IPv4, IPv6 or the Unix domain. A value.
///
///     net::acceptor web{8080};                              // any local address
///     net::acceptor local{"127.0.0.1:8080"};
///     net::acceptor control{net::unix_address{"/run/app"}};
///
/// It is made implicitly of all of these, so that every call that takes an endpoint takes them.
class endpoint {
public:
    /// None: AF_UNSPEC.
    endpoint() noexcept = default;

    /// Any local IPv4 address: for servers.
    endpoint(std::uint16_t port) noexcept;          // NOLINT(google-explicit-constructor)
    endpoint(const inet_address& address) noexcept; // NOLINT(google-explicit-constructor)
    endpoint(const unix_address& address) noexcept; // NOLINT(google-explicit-constructor)
    /// A numeric address: {"127.0.0.1", 80}, {"::1", 80}, {"fe80::1%eth0", 80}. Throws as
    /// inet_address does.
    endpoint(std::string_view ip, std::uint16_t port);

    /// What parse() reads. Throws std::system_error with std::errc::invalid_argument, whose message
    /// quotes the text, when it is none.
    template <std::convertible_to<std::string_view> Text>
    endpoint(const Text& text) // NOLINT(google-explicit-constructor)
        : endpoint(text_tag{}, std::string_view(text)) {}

    /// From the system's form. Throws std::system_error (address_family_not_supported) for other
    /// families; AF_UNSPEC, and a length of 0, are no address.
    endpoint(const ::sockaddr* address, ::socklen_t length);

    /// "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/run/x", "unix:@name" (abstract); or
    /// nothing when the text is none of these. No look-up ever happens here.
    static std::optional<endpoint> parse(std::string_view text) noexcept;

    /// What parse() reads; "" for none.
    [[nodiscard]] std::string to_string() const;

    /// AF_INET, AF_INET6, AF_UNIX, or AF_UNSPEC.
    [[nodiscard]] int family() const noexcept { return storage_.generic.sa_family; }
    [[nodiscard]] bool is_inet() const noexcept {
        return family() == AF_INET || family() == AF_INET6;
    }
    [[nodiscard]] bool is_unix() const noexcept { return family() == AF_UNIX; }
    /// The port of an internet address, otherwise 0.
    [[nodiscard]] std::uint16_t port() const noexcept;

    /// The address of a family. They throw std::system_error (address_family_not_supported) when it
    /// is of another.
    [[nodiscard]] inet_address as_inet() const;
    [[nodiscard]] unix_address as_unix() const;

    /// For system calls.
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
