#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace coil::sim::detail {

/// A socket address of any family.
struct endpoint {
    int family = AF_UNSPEC;
    std::array<std::uint8_t, 16> ip{}; // IPv4: the first four bytes
    std::uint16_t port = 0;
    std::string path; // AF_UNIX; begins with a null character if it is abstract

    friend auto operator<=>(const endpoint&, const endpoint&) = default;

    [[nodiscard]] bool is_any() const noexcept { return ip == std::array<std::uint8_t, 16>{}; }
    [[nodiscard]] bool is_loopback() const noexcept {
        if (family == AF_INET) {
            return ip[0] == 127;
        }
        std::array<std::uint8_t, 16> one{};
        one[15] = 1;
        return ip == one;
    }

    [[nodiscard]] bool is_multicast() const noexcept {
        return (family == AF_INET && (ip[0] & 0xf0) == 0xe0) ||
               (family == AF_INET6 && ip[0] == 0xff);
    }

    /// An IPv4 address as an IPv6 socket sees it, ::ffff:a.b.c.d: ipv6(7).
    [[nodiscard]] bool is_mapped() const noexcept {
        return family == AF_INET6 && std::all_of(ip.begin(), ip.begin() + 10, is_zero) &&
               ip[10] == 0xff && ip[11] == 0xff;
    }
    [[nodiscard]] endpoint mapped() const {
        endpoint e = *this;
        if (family == AF_INET) {
            e.family = AF_INET6;
            e.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ip[0], ip[1], ip[2], ip[3]};
        }
        return e;
    }
    [[nodiscard]] endpoint unmapped() const {
        endpoint e = *this;
        if (is_mapped()) {
            e.family = AF_INET;
            e.ip = {ip[12], ip[13], ip[14], ip[15]};
        }
        return e;
    }

    static endpoint v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d,
                       std::uint16_t port = 0) noexcept {
        endpoint e;
        e.family = AF_INET;
        e.ip = {a, b, c, d};
        e.port = port;
        return e;
    }

    static bool is_zero(std::uint8_t byte) noexcept { return byte == 0; }

    /// The address of an unbound AF_UNIX socket.
    static endpoint nameless() noexcept {
        endpoint e;
        e.family = AF_UNIX;
        return e;
    }

    /// 0 or -errno.
    static int read(endpoint& to, const void* address, ::socklen_t length) {
        if (address == nullptr) {
            return -EFAULT;
        }
        if (length < sizeof(::sa_family_t)) {
            return -EINVAL;
        }
        ::sa_family_t family = 0;
        std::memcpy(&family, address, sizeof family);
        to.family = family;
        if (family == AF_INET) {
            ::sockaddr_in a{};
            if (length < sizeof a) {
                return -EINVAL;
            }
            std::memcpy(&a, address, sizeof a);
            to.ip = {};
            std::memcpy(to.ip.data(), &a.sin_addr, 4);
            to.port = ntohs(a.sin_port);
            return 0;
        }
        if (family == AF_INET6) {
            ::sockaddr_in6 a{};
            if (length < 24) {
                return -EINVAL;
            }
            std::memcpy(&a, address, std::min<std::size_t>(length, sizeof a));
            std::memcpy(to.ip.data(), &a.sin6_addr, 16);
            to.port = ntohs(a.sin6_port);
            return 0;
        }
        if (family == AF_UNIX) {
            const char* const text = static_cast<const char*>(address) + sizeof family;
            const std::size_t room = length - sizeof family;
            if (room > sizeof(::sockaddr_un::sun_path)) {
                return -EINVAL;
            }
            to.path = room > 0 && text[0] == 0 ? std::string(text, room)
                                               : std::string(text, ::strnlen(text, room));
            return 0;
        }
        return family == AF_UNSPEC ? 0 : -EAFNOSUPPORT;
    }

    /// Writes as much as fits; `length` becomes the full length.
    void write(void* address, ::socklen_t& length) const {
        ::sockaddr_storage storage{};
        ::socklen_t size = sizeof(::sa_family_t);
        if (family == AF_INET) {
            auto& a = reinterpret_cast<::sockaddr_in&>(storage);
            std::memcpy(&a.sin_addr, ip.data(), 4);
            a.sin_port = htons(port);
            size = sizeof a;
        } else if (family == AF_INET6) {
            auto& a = reinterpret_cast<::sockaddr_in6&>(storage);
            std::memcpy(&a.sin6_addr, ip.data(), 16);
            a.sin6_port = htons(port);
            size = sizeof a;
        } else if (family == AF_UNIX) {
            auto& a = reinterpret_cast<::sockaddr_un&>(storage);
            std::memcpy(a.sun_path, path.data(), path.size());
            size += static_cast<::socklen_t>(path.size());
            size += !path.empty() && path[0] != 0 ? 1 : 0;
        }
        storage.ss_family = static_cast<::sa_family_t>(family);
        std::memcpy(address, &storage, std::min(length, size));
        length = size;
    }
};

} // namespace coil::sim::detail
