#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/socket_option_element.hpp>
#include <coil/uring/prep.hpp>

#include <sys/socket.h>

// Socket options. The ring supports them as commands to the socket (IORING_OP_URING_CMD, Linux
// 6.7): setsockopt(2) for every level, getsockopt(2) for SOL_SOCKET only. If the ring refuses a
// command, the system call is made when the refusal arrives, within the same await, even in a chain
// (whose next call is then submitted separately). Options never wait for a peer, so this call does
// not block. The system call needs a plain descriptor: with a direct one the result is -EOPNOTSUPP.
// A descriptor that is not a socket also returns -EOPNOTSUPP, whereas the system call fails with
// ENOTSOCK.

namespace coil::io {

/// getsockopt(2): 0, with the option in `*value` and its length in `*length`, whose value on entry
/// is the capacity. Both belong to the caller, must outlive the await, and are unchanged on
/// failure.
///
/// IORING_OP_URING_CMD for SOL_SOCKET (Linux 6.7); other levels and older kernels: the system call.
inline io_awaitable<detail::get_option_element>
getsockopt(descriptor fd, int level, int name, void* value, ::socklen_t* length) noexcept {
    return io_awaitable<detail::get_option_element>(
        detail::get_option_element(fd, level, name, value, length));
}

/// setsockopt(2): 0. The value must outlive the await.
///
/// IORING_OP_URING_CMD (Linux 6.7); older kernels: the system call.
inline io_awaitable<detail::socket_option_element>
setsockopt(descriptor fd, int level, int name, const void* value, ::socklen_t length) noexcept {
    return io_awaitable<detail::socket_option_element>(detail::socket_option_element(
        detail::request_on(fd, uring::prep::setsockopt(fd.number(), level, name, value, length))));
}

} // namespace coil::io
