#include <coil/net/endpoint.hpp>

#include <cstring>
#include <system_error>

namespace coil::net {

namespace {

constexpr std::string_view unix_prefix = "unix:";

[[noreturn]] void throw_wrong_family(const char* what) {
    throw std::system_error(std::make_error_code(std::errc::address_family_not_supported), what);
}

} // namespace

endpoint::endpoint(std::uint16_t port) noexcept : endpoint(inet_address(port)) {}

endpoint::endpoint(const inet_address& address) noexcept : size_(address.size()) {
    std::memcpy(&storage_, address.data(), size_);
}

endpoint::endpoint(const unix_address& address) noexcept : size_(address.size()) {
    std::memcpy(&storage_, address.data(), size_);
}

endpoint::endpoint(std::string_view ip, std::uint16_t port) : endpoint(inet_address(ip, port)) {}

endpoint::endpoint(text_tag, std::string_view text) {
    const std::optional<endpoint> parsed = parse(text);
    if (!parsed) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                "coil: not an endpoint (\"127.0.0.1:80\", \"[::1]:80\", "
                                "\"unix:/path\"): \"" +
                                    std::string(text) + '"');
    }
    *this = *parsed;
}

endpoint::endpoint(const ::sockaddr* address, ::socklen_t length) {
    if (length < sizeof(::sa_family_t) || address->sa_family == AF_UNSPEC) {
        return;
    }
    if (address->sa_family == AF_INET && length >= sizeof storage_.v4) { // once for each datagram
        std::memcpy(&storage_.v4, address, sizeof storage_.v4);
        size_ = sizeof storage_.v4;
        return;
    }
    *this = address->sa_family == AF_UNIX ? endpoint(unix_address(address, length))
                                          : endpoint(inet_address(address, length));
}

std::optional<endpoint> endpoint::parse(std::string_view text) noexcept {
    if (!text.starts_with(unix_prefix)) {
        const std::optional<inet_address> address = inet_address::parse(text);
        return address ? std::optional<endpoint>(*address) : std::nullopt;
    }
    const std::string_view name = text.substr(unix_prefix.size());
    const bool abstract = name.starts_with('@');
    const std::size_t length = name.size() - (abstract ? 1 : 0);
    if (length == 0 || length > unix_address::max_length ||
        (!abstract && name.find('\0') != std::string_view::npos)) {
        return std::nullopt;
    }
    return abstract ? unix_address::abstract(name.substr(1)) : unix_address(name);
}

std::string endpoint::to_string() const {
    if (is_unix()) {
        return as_unix().to_string();
    }
    return is_inet() ? as_inet().to_string() : std::string();
}

std::uint16_t endpoint::port() const noexcept {
    switch (family()) {
    case AF_INET:
        return ntohs(storage_.v4.sin_port);
    case AF_INET6:
        return ntohs(storage_.v6.sin6_port);
    default:
        return 0;
    }
}

inet_address endpoint::as_inet() const {
    if (!is_inet()) {
        throw_wrong_family("coil: this endpoint is not an internet address");
    }
    return {data(), size_};
}

unix_address endpoint::as_unix() const {
    if (!is_unix()) {
        throw_wrong_family("coil: this endpoint is not the address of a Unix socket");
    }
    return {data(), size_};
}

bool operator==(const endpoint& a, const endpoint& b) noexcept {
    if (a.family() != b.family()) {
        return false;
    }
    if (a.is_unix()) {
        return a.as_unix() == b.as_unix();
    }
    return !a.is_inet() || a.as_inet() == b.as_inet();
}

} // namespace coil::net
