#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

namespace coil::net {

/// The address of a Unix domain socket: unix(7). A value type; it never accesses the file system.
///
///     net::unix_address control{"/run/app/control"};       // a name in the file system
///     auto bus = net::unix_address::abstract("app/bus");   // not in the file system
class unix_address {
public:
    /// The longest path or abstract name, in bytes.
    static constexpr std::size_t max_length = sizeof(::sockaddr_un::sun_path) - 1;

    /// Unnamed: the address of a socket that is not bound, such as a client's.
    unix_address() noexcept;

    /// A path in the file system, absolute or relative to the working directory. Throws
    /// std::system_error: invalid_argument for an empty path or one with a null character,
    /// filename_too_long for more than max_length bytes.
    explicit unix_address(std::string_view path);

    /// A name in the abstract namespace, of any bytes. The name disappears with the last socket
    /// bound to it. Throws as the constructor does, but null characters are allowed.
    static unix_address abstract(std::string_view name);

    /// Converts from a sockaddr. Throws std::system_error (address_family_not_supported) for other
    /// families.
    unix_address(const ::sockaddr* address, ::socklen_t length);

    [[nodiscard]] bool is_unnamed() const noexcept { return size_ == sizeof(::sa_family_t); }
    [[nodiscard]] bool is_abstract() const noexcept {
        return !is_unnamed() && storage_.sun_path[0] == '\0';
    }
    /// The path, or the abstract name without its leading null character; empty if unnamed. The
    /// view refers to this object.
    [[nodiscard]] std::string_view name() const noexcept;

    /// "unix:/run/x" or "unix:@name" (abstract), which endpoint::parse() reads, or "unix:"
    /// (unnamed), which it does not. A relative path that begins with '@' is written with a leading
    /// "./".
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] const ::sockaddr* data() const noexcept {
        return reinterpret_cast<const ::sockaddr*>(&storage_);
    }
    [[nodiscard]] ::socklen_t size() const noexcept { return size_; }

    /// Same kind and same name.
    friend bool operator==(const unix_address& a, const unix_address& b) noexcept;

private:
    ::sockaddr_un storage_{};
    ::socklen_t size_;
};

} // namespace coil::net
