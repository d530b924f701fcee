#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/message_element.hpp>
#include <coil/uring/prep.hpp>

#include <sys/socket.h>

// Datagrams and messages: transfers with an address, several buffers or control data. Every
// function only describes the call; co_await starts it and returns an io_result: bytes ≥ 0 or
// -errno. Addresses and message headers belong to the caller and must outlive the await.

namespace coil::io {

/// sendto(2): bytes sent. Never raises SIGPIPE.
inline io_awaitable<detail::send_to_element> sendto(descriptor fd,
                                                    const_buffer buf COIL_LIFETIMEBOUND, int flags,
                                                    const ::sockaddr* address,
                                                    ::socklen_t length) noexcept {
    return io_awaitable<detail::send_to_element>(
        detail::send_to_element(fd, buf, flags | MSG_NOSIGNAL, address, length));
}

/// recvfrom(2): bytes received. Stores the sender's address in `*address` and the size of that
/// address, which may exceed the capacity, in `*length`. Both pointers may be null.
inline io_awaitable<detail::receive_from_element> recvfrom(descriptor fd,
                                                           mutable_buffer buf COIL_LIFETIMEBOUND,
                                                           int flags, ::sockaddr* address,
                                                           ::socklen_t* length) noexcept {
    return io_awaitable<detail::receive_from_element>(
        detail::receive_from_element(fd, buf, flags, address, length));
}

/// sendmsg(2): bytes sent, perhaps fewer than requested. In the middle of a `&&` chain coil adds
/// MSG_WAITALL: the next operation starts when everything has been sent, and a send that remains
/// short ends the chain. Never raises SIGPIPE.
inline operation sendmsg(descriptor fd, const ::msghdr* message, int flags = 0) noexcept {
    return detail::make_operation(fd,
                                  uring::prep::sendmsg(fd.number(), message, flags | MSG_NOSIGNAL));
}

/// recvmsg(2): bytes received. The caller must close descriptors received as control data.
inline operation recvmsg(descriptor fd, ::msghdr* message, int flags = 0) noexcept {
    return detail::make_operation(fd, uring::prep::recvmsg(fd.number(), message, flags));
}

} // namespace coil::io
