#include <coil/net/inet_address.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <system_error>

#include <arpa/inet.h>
#include <net/if.h>

namespace coil::net {

namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, port);
    if (text.empty() || error != std::errc() || rest != end) {
        return std::nullopt;
    }
    return port;
}

std::optional<std::uint32_t> parse_scope(const char* text) noexcept {
    if (const unsigned index = ::if_nametoindex(text); index != 0) {
        return index;
    }
    std::uint32_t index = 0;
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, index);
    if (text == end || error != std::errc() || rest != end) {
        return std::nullopt;
    }
    return index;
}

} // namespace

inet_address::inet_address(std::uint16_t port, int family) noexcept {
    if (family == AF_INET6) {
        storage_.v6 = {};
        storage_.v6.sin6_family = AF_INET6;
        storage_.v6.sin6_addr = in6addr_any;
        storage_.v6.sin6_port = htons(port);
    } else {
        storage_.v4 = {};
        storage_.v4.sin_family = AF_INET;
        storage_.v4.sin_addr.s_addr = htonl(INADDR_ANY);
        storage_.v4.sin_port = htons(port);
    }
}

inet_address::inet_address(std::string_view ip, std::uint16_t port) {
    const std::optional<inet_address> parsed = parse(ip, port);
    if (!parsed) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                "coil: not a numeric IP address: \"" + std::string(ip) + '"');
    }
    *this = *parsed;
}

inet_address::inet_address(const ::sockaddr* address, ::socklen_t length) {
    if (address->sa_family == AF_INET && length >= sizeof storage_.v4) {
        std::memcpy(&storage_.v4, address, sizeof storage_.v4);
    } else if (address->sa_family == AF_INET6 && length >= sizeof storage_.v6) {
        std::memcpy(&storage_.v6, address, sizeof storage_.v6);
    } else {
        throw std::system_error(std::make_error_code(std::errc::address_family_not_supported),
                                "coil: not an internet address");
    }
}

std::optional<inet_address> inet_address::parse(std::string_view ip, std::uint16_t port) noexcept {
    std::array<char, INET6_ADDRSTRLEN + IF_NAMESIZE + 1> text{};
    if (ip.size() >= text.size() || ip.find('\0') != std::string_view::npos) {
        return std::nullopt;
    }
    std::ranges::copy(ip, text.begin());
    inet_address address(port);
    if (::inet_pton(AF_INET, text.data(), &address.storage_.v4.sin_addr) == 1) {
        return address;
    }
    address = inet_address(port, AF_INET6);
    if (char* const percent = std::strchr(text.data(), '%')) {
        *percent = '\0';
        const std::optional<std::uint32_t> scope = parse_scope(percent + 1);
        if (!scope) {
            return std::nullopt;
        }
        address.storage_.v6.sin6_scope_id = *scope;
    }
    if (::inet_pton(AF_INET6, text.data(), &address.storage_.v6.sin6_addr) == 1) {
        return address;
    }
    return std::nullopt;
}

std::optional<inet_address> inet_address::parse(std::string_view text) noexcept {
    std::string_view ip;
    std::string_view port;
    if (text.starts_with('[')) {
        const std::size_t bracket = text.find(']');
        if (bracket == std::string_view::npos || text.substr(bracket + 1, 1) != ":") {
            return std::nullopt;
        }
        ip = text.substr(1, bracket - 1);
        port = text.substr(bracket + 2);
        if (ip.find(':') == std::string_view::npos) {
            return std::nullopt; // brackets are for IPv6 only
        }
    } else {
        const std::size_t colon = text.find(':');
        if (colon == std::string_view::npos) {
            return std::nullopt;
        }
        ip = text.substr(0, colon);
        port = text.substr(colon + 1);
    }
    const std::optional<std::uint16_t> number = parse_port(port);
    return number ? parse(ip, *number) : std::nullopt;
}

std::string inet_address::ip() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (family() == AF_INET) {
        return ::inet_ntop(AF_INET, &storage_.v4.sin_addr, text.data(), text.size());
    }
    std::string ip = ::inet_ntop(AF_INET6, &storage_.v6.sin6_addr, text.data(), text.size());
    if (storage_.v6.sin6_scope_id != 0) {
        std::array<char, IF_NAMESIZE> name{};
        ip += '%';
        ip += ::if_indextoname(storage_.v6.sin6_scope_id, name.data()) != nullptr
                  ? std::string(name.data())
                  : std::to_string(storage_.v6.sin6_scope_id);
    }
    return ip;
}

std::string inet_address::to_string() const {
    const std::string address = family() == AF_INET ? ip() : '[' + ip() + ']';
    return address + ':' + std::to_string(port());
}

std::uint16_t inet_address::port() const noexcept {
    return ntohs(family() == AF_INET ? storage_.v4.sin_port : storage_.v6.sin6_port);
}

bool operator==(const inet_address& a, const inet_address& b) noexcept {
    if (a.family() != b.family() || a.port() != b.port()) {
        return false;
    }
    if (a.family() == AF_INET) {
        return a.storage_.v4.sin_addr.s_addr == b.storage_.v4.sin_addr.s_addr;
    }
    return std::memcmp(&a.storage_.v6.sin6_addr, &b.storage_.v6.sin6_addr, sizeof(::in6_addr)) ==
               0 &&
           a.storage_.v6.sin6_scope_id == b.storage_.v6.sin6_scope_id;
}

} // namespace coil::net
