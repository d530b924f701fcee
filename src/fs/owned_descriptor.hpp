#pragma once

#include "calls.hpp"

#include <utility>

namespace coil::fs::detail {

/// A descriptor that is closed with its owner: what a coroutine holds open when it is destroyed in
/// the middle. close(2) at once, so for what has nothing to flush.
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

    /// What close(2) says, which may be that writing has failed: 0 or −errno.
    int close() noexcept { return sys::close(std::exchange(fd_, -1)); }
    /// Gives up ownership.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    /// The descriptor, or what it was made of.
    operator int() const noexcept { return fd_; }

private:
    int fd_ = -1;
};

} // namespace coil::fs::detail
