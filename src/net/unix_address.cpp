#include <coil/net/unix_address.hpp>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace coil::net {

namespace {

/// The offset of the name in a sockaddr_un.
constexpr ::socklen_t name_offset = offsetof(::sockaddr_un, sun_path);

[[noreturn]] void refuse(std::errc code, std::string_view name) {
    throw std::system_error(std::make_error_code(code),
                            "coil: not the name of a Unix socket: \"" + std::string(name) + '"');
}

} // namespace

unix_address::unix_address() noexcept : size_(name_offset) { storage_.sun_family = AF_UNIX; }

unix_address::unix_address(std::string_view path) : unix_address() {
    if (path.empty() || path.find('\0') != std::string_view::npos) {
        refuse(std::errc::invalid_argument, path);
    }
    if (path.size() > max_length) {
        refuse(std::errc::filename_too_long, path);
    }
    std::ranges::copy(path, storage_.sun_path);
    size_ = name_offset + static_cast<::socklen_t>(path.size()) + 1;
}

unix_address unix_address::abstract(std::string_view name) {
    if (name.empty()) {
        refuse(std::errc::invalid_argument, name);
    }
    if (name.size() > max_length) {
        refuse(std::errc::filename_too_long, name);
    }
    unix_address address;
    std::ranges::copy(name, address.storage_.sun_path + 1);
    address.size_ = name_offset + 1 + static_cast<::socklen_t>(name.size());
    return address;
}

unix_address::unix_address(const ::sockaddr* address, ::socklen_t length) : unix_address() {
    if (length < name_offset || address->sa_family != AF_UNIX) {
        throw std::system_error(std::make_error_code(std::errc::address_family_not_supported),
                                "coil: not the address of a Unix socket");
    }
    // Linux may count a terminating null that does not fit into sun_path.
    const std::size_t room = std::min<std::size_t>(length, sizeof storage_) - name_offset;
    const char* const name = reinterpret_cast<const char*>(address) + name_offset;
    if (room == 0) {
        return;
    }
    const bool is_path = name[0] != '\0';
    const std::size_t used = is_path ? ::strnlen(name, room) : room;
    std::memcpy(storage_.sun_path, name, used);
    size_ = name_offset + static_cast<::socklen_t>(used + (is_path && used <= max_length ? 1 : 0));
}

std::string_view unix_address::name() const noexcept {
    const std::size_t used = size_ - name_offset;
    if (used == 0) {
        return {};
    }
    if (storage_.sun_path[0] == '\0') {
        return {storage_.sun_path + 1, used - 1};
    }
    return {storage_.sun_path, ::strnlen(storage_.sun_path, used)};
}

std::string unix_address::to_string() const {
    std::string text = "unix:";
    if (is_abstract()) {
        text += '@';
    } else if (name().starts_with('@')) {
        text += "./";
    }
    return text += name();
}

bool operator==(const unix_address& a, const unix_address& b) noexcept {
    return a.is_abstract() == b.is_abstract() && a.name() == b.name();
}

} // namespace coil::net
