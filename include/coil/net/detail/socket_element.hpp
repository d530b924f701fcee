#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/detail/owned_close.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>
#include <limits>

namespace coil::net::detail {

/// connect with its own copy of the address.
class connect_element : public coil::detail::io_element {
public:
    connect_element(int fd, const endpoint& address) noexcept
        : io_element(uring::prep::connect(fd, nullptr, 0)), address_(address) {}

    coil::detail::sqe_slot& arm() noexcept {
        entry_.request.addr = reinterpret_cast<std::uint64_t>(address_.data());
        entry_.request.off = address_.size();
        return io_element::arm();
    }

private:
    endpoint address_;
};

/// The value of a socket without a descriptor: calls on it return -EBADF, and error() reports no
/// error.
inline constexpr int nothing = std::numeric_limits<int>::min();

using close_element = coil::detail::owned_close_element<nothing>;

} // namespace coil::net::detail
