#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/socket_flags.hpp>
#include <coil/uring/prep.hpp>

#include <concepts>
#include <cstddef>

#include <sys/socket.h>

// Socket calls. Every function only describes the call; co_await starts it and returns an
// io_result: a value ≥ 0 or -errno. Addresses belong to the caller and must outlive the await.

namespace coil::io {

/// socket(2): a descriptor, which is closed if the awaiting coroutine is destroyed meanwhile.
inline descriptor_operation socket(int domain, int type, int protocol = 0) noexcept {
    return detail::make_descriptor_operation(uring::prep::socket(domain, type, protocol));
}

/// bind(2): 0.
inline operation bind(descriptor fd, const ::sockaddr* address, ::socklen_t length) noexcept {
    return detail::make_operation(fd, uring::prep::bind(fd.number(), address, length));
}

/// listen(2): 0.
inline operation listen(descriptor fd, int backlog) noexcept {
    return detail::make_operation(fd, uring::prep::listen(fd.number(), backlog));
}

/// accept4(2): a descriptor, which is closed if the awaiting coroutine is destroyed meanwhile.
/// `flags`: SOCK_NONBLOCK, SOCK_CLOEXEC.
inline descriptor_operation accept(descriptor fd, ::sockaddr* address = nullptr,
                                   ::socklen_t* length = nullptr, int flags = 0) noexcept {
    return detail::make_descriptor_operation(
        detail::request_on(fd, uring::prep::accept(fd.number(), address, length, flags)));
}

/// connect(2): 0.
inline operation connect(descriptor fd, const ::sockaddr* address, ::socklen_t length) noexcept {
    return detail::make_operation(fd, uring::prep::connect(fd.number(), address, length));
}

/// send(2): bytes sent, perhaps fewer than requested. In the middle of a `&&` chain coil adds
/// MSG_WAITALL: the next operation starts when everything has been sent, and a send that remains
/// short ends the chain. Never raises SIGPIPE: on a closed connection it returns -EPIPE. On a full
/// AF_UNIX datagram socket, Linux sends an empty datagram: see docs/reference/operations.md, and
/// use write().
inline operation send(descriptor fd, const_buffer buf COIL_LIFETIMEBOUND, int flags = 0) noexcept
    COIL_WARN_IF(detail::may_be_a_length(flags, detail::send_flags, buf.size()),
                 "the argument after the buffer is the flags; the length is part of the buffer") {
    detail::check_flags(flags, detail::send_flags, buf.size());
    return detail::make_operation(fd, uring::prep::send(fd.number(), buf.data(),
                                                        detail::transfer_size(buf.size()),
                                                        flags | MSG_NOSIGNAL));
}

/// Produces a readable compiler error.
template <detail::bare_pointer Data, std::integral Size>
operation send(descriptor fd, Data&& data, Size n, int flags = 0)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");
template <std::integral Size>
operation send(descriptor, const_buffer, Size, int)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");

/// Rejects a length in place of the flags: the length is part of the buffer.
template <std::same_as<std::size_t> Flags>
operation send(descriptor fd, const_buffer buf COIL_LIFETIMEBOUND, Flags flags) noexcept {
    static_assert(detail::are_flags<Flags>,
                  "the argument after the buffer is the flags; the length is part of the buffer");
    return send(fd, buf, static_cast<int>(flags));
}

/// recv(2): bytes received, 0 when the peer has shut down its side.
inline operation recv(descriptor fd, mutable_buffer buf COIL_LIFETIMEBOUND, int flags = 0) noexcept
    COIL_WARN_IF(detail::may_be_a_length(flags, detail::recv_flags, buf.size()),
                 "the argument after the buffer is the flags; the length is part of the buffer") {
    detail::check_flags(flags, detail::recv_flags, buf.size());
    return detail::make_operation(
        fd, uring::prep::recv(fd.number(), buf.data(), detail::transfer_size(buf.size()), flags));
}

/// Produces a readable compiler error.
template <detail::bare_pointer Data, std::integral Size>
operation recv(descriptor fd, Data&& data, Size n, int flags = 0)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");
template <std::integral Size>
operation recv(descriptor, mutable_buffer, Size, int)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");

/// Rejects a length in place of the flags: the length is part of the buffer.
template <std::same_as<std::size_t> Flags>
operation recv(descriptor fd, mutable_buffer buf COIL_LIFETIMEBOUND, Flags flags) noexcept {
    static_assert(detail::are_flags<Flags>,
                  "the argument after the buffer is the flags; the length is part of the buffer");
    return recv(fd, buf, static_cast<int>(flags));
}

/// shutdown(2): 0.
inline operation shutdown(descriptor fd, int how) noexcept {
    return detail::make_operation(fd, uring::prep::shutdown(fd.number(), how));
}

} // namespace coil::io
