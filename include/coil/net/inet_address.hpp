#pragma once

#include <coil/core/config.hpp>

#include <compare>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <netinet/in.h>
#include <sys/socket.h>

namespace coil::net {

/// An IPv4 or IPv6 address with a port: ip(7), ipv6(7). A value type; it never resolves names (see
/// net::resolve).
///
///     net::inet_address any{8080};                // 0.0.0.0:8080
///     net::inet_address local("::1", 8080);
///     auto parsed = net::inet_address::parse("127.0.0.1:80");
class inet_address {
public:
    /// 0.0.0.0:0
    inet_address() noexcept : inet_address(std::uint16_t{0}) {}

    /// Any local IPv4 address, for servers. With AF_INET6, any local IPv6 address, which also
    /// accepts IPv4 clients unless net.ipv6.bindv6only is set.
    explicit inet_address(std::uint16_t port, int family = AF_INET) noexcept;

    /// A numeric address: "127.0.0.1", "::1", "fe80::1%eth0". For any other text, throws
    /// std::system_error with std::errc::invalid_argument and a message that quotes the text.
    inet_address(std::string_view ip, std::uint16_t port);
    /// Produce readable compiler errors.
    template <std::convertible_to<std::string_view> Text>
    explicit inet_address(Text&&)
        COIL_DELETE("pass the port, or parse both: inet_address(\"127.0.0.1\", 80), "
                    "inet_address::parse(\"127.0.0.1:80\")");
    template <std::convertible_to<std::string_view> Text,
              std::convertible_to<std::string_view> Port>
    inet_address(Text&&, Port&&)
        COIL_DELETE("the port is a number: inet_address(\"127.0.0.1\", 80)");
    template <std::integral Port, std::convertible_to<std::string_view> Text>
    inet_address(Port, Text&&)
        COIL_DELETE("the address comes before the port: inet_address(\"127.0.0.1\", 80)");

    /// Converts from a sockaddr. Throws std::system_error (address_family_not_supported) for other
    /// families.
    inet_address(const ::sockaddr* address, ::socklen_t length);

    /// Parses "127.0.0.1:80" or "[::1]:80"; nullopt if the text is neither.
    static std::optional<inet_address> parse(std::string_view text) noexcept;
    /// Parses a numeric address with a separate port.
    static std::optional<inet_address> parse(std::string_view ip, std::uint16_t port) noexcept;

    /// "127.0.0.1:80" or "[::1]:80".
    [[nodiscard]] std::string to_string() const;
    /// The address without the port: "127.0.0.1", "::1".
    [[nodiscard]] std::string ip() const;

    [[nodiscard]] std::uint16_t port() const noexcept;
    /// The interface index of an IPv6 address (if_nametoindex(3)); 0 if it has none, and always for
    /// IPv4.
    [[nodiscard]] std::uint32_t scope_id() const noexcept {
        return family() == AF_INET6 ? storage_.v6.sin6_scope_id : 0;
    }
    /// AF_INET or AF_INET6.
    [[nodiscard]] int family() const noexcept { return storage_.generic.sa_family; }

    [[nodiscard]] const ::sockaddr* data() const noexcept { return &storage_.generic; }
    [[nodiscard]] ::socklen_t size() const noexcept {
        return family() == AF_INET ? sizeof storage_.v4 : sizeof storage_.v6;
    }

    /// Same family, address, port and scope.
    friend bool operator==(const inet_address& a, const inet_address& b) noexcept;

private:
    union {
        ::sockaddr generic;
        ::sockaddr_in v4;
        ::sockaddr_in6 v6;
    } storage_{};
};

} // namespace coil::net
