#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/descriptor_owners.hpp>

#include <utility>

namespace coil::io {

/// Owns a descriptor and closes it in its destructor. Move-only. For descriptors that have no class
/// of their own, such as those received from another process.
class [[nodiscard("the descriptor would be closed at once")]] owned_descriptor {
public:
    /// Owns nothing.
    owned_descriptor() noexcept = default;
    /// Takes ownership of a descriptor; with a negative number it owns nothing.
    explicit owned_descriptor(int fd) noexcept
        : fd_(fd < 0 ? -1 : coil::detail::owned_by(fd, "io::owned_descriptor")) {}
    owned_descriptor(owned_descriptor&& other) noexcept
        : fd_(coil::detail::exchange(other.fd_, -1)) {}
    owned_descriptor& operator=(owned_descriptor&& other) noexcept {
        if (this != &other) {
            const owned_descriptor closing(std::move(*this));
            fd_ = coil::detail::exchange(other.fd_, -1);
        }
        return *this;
    }
    /// close(2), immediately.
    ~owned_descriptor();

    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
    /// The descriptor, or −1 if it owns nothing.
    [[nodiscard]] int native_handle() const noexcept { return fd_; }
    /// Releases ownership.
    [[nodiscard]] int release() noexcept {
        return coil::detail::given_up(coil::detail::exchange(fd_, -1));
    }

private:
    int fd_ = -1;
};

} // namespace coil::io
