#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/pipe_element.hpp>
#include <coil/uring/prep.hpp>

#include <cstddef>
#include <cstdint>

#include <fcntl.h>

// Pipes, and transfers between descriptors without a copy in user space. Every function only
// describes the call; co_await starts it and returns an io_result: a value ≥ 0 or -errno, as the
// man page says.

namespace coil::io {

/// splice(2): bytes moved, 0 at the end. One of the two must be a pipe. A null offset means the
/// file's position, and is required for a pipe; other offsets are advanced by the bytes moved.
inline io_awaitable<detail::splice_element> splice(descriptor fd_in, ::off64_t* off_in,
                                                   descriptor fd_out, ::off64_t* off_out,
                                                   std::size_t len, unsigned flags = 0) noexcept {
    return io_awaitable<detail::splice_element>(
        detail::splice_element(fd_in, off_in, fd_out, off_out, detail::transfer_size(len), flags));
}

/// tee(2): bytes duplicated into the second pipe.
inline operation tee(descriptor fd_in, descriptor fd_out, std::size_t len,
                     unsigned flags = 0) noexcept {
    return detail::make_operation(detail::request_on_both(
        fd_in, fd_out,
        uring::prep::tee(fd_in.number(), fd_out.number(), detail::transfer_size(len),
                         detail::splice_flags(fd_in, flags))));
}

/// pipe2(2), or without flags pipe(2): 0, and `fds` filled. Both descriptors are closed if the
/// awaiting coroutine is destroyed meanwhile. Kernels before 6.16: the system call, immediately.
inline io_awaitable<detail::pipe_element> pipe(int (&fds)[2], int flags = 0) noexcept {
    return io_awaitable<detail::pipe_element>(detail::pipe_element(fds, flags));
}

/// pipe2(2): the same as pipe.
inline io_awaitable<detail::pipe_element> pipe2(int (&fds)[2], int flags) noexcept {
    return pipe(fds, flags);
}

} // namespace coil::io
