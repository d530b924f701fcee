#pragma once

#include "fuzz/input.hpp"

#include <coil/net/endpoint.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/socket.h>

namespace fuzz {

namespace endpoint_target {

/// Checks what must hold for every endpoint.
inline void check_value(const coil::net::endpoint& e) {
    require(e.size() <= sizeof(::sockaddr_storage), "an endpoint fits into a sockaddr_storage");
    require(coil::net::endpoint(e.data(), e.size()) == e,
            "an endpoint is the same after a conversion to a sockaddr and back");
    require(e.is_inet() || e.port() == 0, "only internet addresses have a port");
    if (e.is_inet()) {
        require(e.as_inet().to_string() == e.to_string(), "both types print the same text");
        require(coil::net::inet_address::parse(e.to_string()) == e.as_inet(),
                "an internet address is the same after printing and parsing");
    }
}

/// Parses any text.
inline void parse(std::string_view text) {
    // In a block of its exact size, so that AddressSanitizer finds a read beyond its end.
    const std::unique_ptr<char[]> exact(new char[text.size()]);
    std::copy(text.begin(), text.end(), exact.get());
    text = {exact.get(), text.size()};
    const std::optional<coil::net::endpoint> parsed = coil::net::endpoint::parse(text);
    bool is_refused = false;
    try {
        const coil::net::endpoint constructed(text);
        require(parsed == constructed, "the constructor and parse() give the same endpoint");
    } catch (const std::system_error& e) {
        is_refused = true;
        require(e.code() == std::errc::invalid_argument, "invalid text is an invalid argument");
    }
    require(is_refused == !parsed, "the constructor and parse() accept the same text");
    if (!parsed) {
        return;
    }
    check_value(*parsed);
    require(parsed->is_unix() == text.starts_with("unix:"), "the prefix decides on the family");
    const std::string printed = parsed->to_string();
    const std::optional<coil::net::endpoint> again = coil::net::endpoint::parse(printed);
    if (printed.size() <= std::string_view("unix:").size() + coil::net::unix_address::max_length) {
        require(again.has_value(), "parse() accepts what to_string() prints");
        require(again->to_string() == printed, "the text stays the same when it is parsed again");
        require(*again == *parsed, "an endpoint is the same after printing and parsing");
    }
}

/// Converts any bytes as a sockaddr.
inline void convert(std::string_view raw) {
    raw = raw.substr(0, sizeof(::sockaddr_storage));
    const std::unique_ptr<char[]> exact(new char[raw.size()]);
    std::copy(raw.begin(), raw.end(), exact.get());
    try {
        check_value({reinterpret_cast<const ::sockaddr*>(exact.get()),
                     static_cast<::socklen_t>(raw.size())});
    } catch (const std::system_error& e) {
        require(e.code() == std::errc::address_family_not_supported,
                "other bytes are an address of another family");
    }
}

} // namespace endpoint_target

/// Text for endpoint::parse() or, after a first byte of 0xff, a sockaddr.
inline void endpoint(bytes input) {
    reader from(input);
    if (!input.empty() && input.front() == 0xff) {
        from.byte();
        endpoint_target::convert(from.text());
    } else {
        endpoint_target::parse(from.text());
    }
}

} // namespace fuzz
