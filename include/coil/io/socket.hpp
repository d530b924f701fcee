#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/uring/prep.hpp>

#include <sys/socket.h>

// Socket calls. Every function only describes the call; co_await starts it and gives an io_result:
// a value ≥ 0 or −errno. Addresses are the caller's memory and must outlive the await.

namespace coil::io {

/// socket(2): a descriptor, which is closed if the awaiting coroutine is destroyed meanwhile.
inline descriptor_operation socket(int domain, int type, int protocol = 0) noexcept {
    return detail::make_descriptor_operation(uring::prep::socket(domain, type, protocol));
}

/// bind(2): 0.
inline operation bind(int fd, const ::sockaddr* address, ::socklen_t length) noexcept {
    return detail::make_operation(uring::prep::bind(fd, address, length));
}

/// listen(2): 0.
inline operation listen(int fd, int backlog) noexcept {
    return detail::make_operation(uring::prep::listen(fd, backlog));
}

/// accept4(2): a descriptor, which is closed if the awaiting coroutine is destroyed meanwhile.
/// `flags`: SOCK_NONBLOCK, SOCK_CLOEXEC.
inline descriptor_operation accept(int fd, ::sockaddr* address = nullptr,
                                   ::socklen_t* length = nullptr, int flags = 0) noexcept {
    return detail::make_descriptor_operation(uring::prep::accept(fd, address, length, flags));
}

/// connect(2): 0.
inline operation connect(int fd, const ::sockaddr* address, ::socklen_t length) noexcept {
    return detail::make_operation(uring::prep::connect(fd, address, length));
}

/// send(2): bytes sent, perhaps fewer than asked. In the middle of a `&&` chain all is sent or the
/// chain ends. The kernel never raises SIGPIPE for it: a closed connection gives -EPIPE.
inline operation send(int fd, const_buffer buf, int flags = 0) noexcept {
    return detail::make_operation(
        uring::prep::send(fd, buf.data(), detail::transfer_size(buf.size()), flags | MSG_NOSIGNAL));
}

/// recv(2): bytes received, 0 when the peer has shut down its side.
inline operation recv(int fd, mutable_buffer buf, int flags = 0) noexcept {
    return detail::make_operation(
        uring::prep::recv(fd, buf.data(), detail::transfer_size(buf.size()), flags));
}

/// shutdown(2): 0.
inline operation shutdown(int fd, int how) noexcept {
    return detail::make_operation(uring::prep::shutdown(fd, how));
}

} // namespace coil::io
