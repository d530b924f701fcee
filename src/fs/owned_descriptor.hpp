#pragma once

#include "syscalls.hpp"

#include <utility>

namespace coil::fs::detail {

/// A descriptor that its owner closes, for coroutines that may be destroyed at any suspension
/// point. Uses close(2) directly, so only for descriptors without data to flush.
class owned_descriptor {
public:
    owned_descriptor() noexcept = default;
    explicit owned_descriptor(int fd) noexcept : fd_(fd) {}
    owned_descriptor(owned_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    owned_descriptor& operator=(owned_descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~owned_descriptor() {
        if (fd_ >= 0) {
            sys::close(fd_);
        }
    }

    /// close(2), which may report a failed write: 0 or -errno.
    int close() noexcept { return sys::close(std::exchange(fd_, -1)); }
    /// Releases ownership.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    /// The descriptor, or the error from which it was constructed.
    operator int() const noexcept { return fd_; }

private:
    int fd_ = -1;
};

} // namespace coil::fs::detail
