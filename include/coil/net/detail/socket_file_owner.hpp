#pragma once

#include <coil/base/exchange.hpp>

#include <cstdint>
#include <string>

namespace coil::net::detail {

/// Owns the socket file of a Unix socket that is bound to a path. The destructor removes the file,
/// unless another file has replaced it.
class socket_file_owner {
public:
    socket_file_owner() noexcept = default;
    explicit socket_file_owner(std::string path);
    socket_file_owner(socket_file_owner&& other) noexcept
        : path_(coil::detail::exchange(other.path_, {})), inode_(other.inode_),
          device_(other.device_) {}
    socket_file_owner& operator=(socket_file_owner&& other) noexcept;
    ~socket_file_owner() { remove(); }

private:
    void remove() noexcept;

    std::string path_; // empty: owns nothing
    std::uint64_t inode_ = 0;
    std::uint64_t device_ = 0;
};

} // namespace coil::net::detail
