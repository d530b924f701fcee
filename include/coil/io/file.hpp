#pragma once

#include <coil/context/detail/descriptor_owners.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/buffer_number.hpp>
#include <coil/io/path_argument.hpp>
#include <coil/uring/prep.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <fcntl.h>
#include <poll.h>
#include <sys/types.h>
#include <sys/uio.h>

struct open_how; // <linux/openat2.h>

// Calls on files, and on descriptors of any kind. Every function only describes the call; co_await
// starts it and returns an io_result: a value ≥ 0 or -errno, as the man page says.
//
// The length is part of the buffer: `read(fd, buf)`, or `read(fd, {buf, n})` for its first n bytes.
// The argument after a buffer is the offset, so `read(fd, buf, sizeof buf)`, as for read(2), would
// read at that offset; clang warns if it can detect this. (If it is intended, write `off_t{sizeof
// buf}`.)

namespace coil::io {

/// Offset −1: the file's current position. Pipes and sockets ignore the offset, whereas pread(2)
/// and pwrite(2) fail with ESPIPE.
inline constexpr ::off_t current_position = -1;

/// read(2), pread(2): bytes read, 0 at the end of the file.
inline operation read(descriptor fd, mutable_buffer buf COIL_LIFETIMEBOUND,
                      ::off_t offset = current_position) noexcept {
    return detail::make_operation(fd, uring::prep::read(fd.number(), buf.data(),
                                                        detail::transfer_size(buf.size()),
                                                        static_cast<std::uint64_t>(offset)));
}

/// Produces a readable compiler error.
template <detail::bare_pointer Data, std::integral Size>
operation read(descriptor fd, Data&& data, Size n, ::off_t offset = current_position)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");
template <std::integral Size>
operation read(descriptor, mutable_buffer, Size, ::off_t)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");

/// The same for an offset of type std::size_t; warns if it equals the length of the buffer.
template <std::same_as<std::size_t> Offset>
inline operation read(descriptor fd, mutable_buffer buf COIL_LIFETIMEBOUND, Offset offset) noexcept
    COIL_WARN_IF(offset != 0 && offset == buf.size(),
                 "the argument after the buffer is the offset; the length is part of the buffer") {
    return read(fd, buf, static_cast<::off_t>(offset));
}

/// write(2), pwrite(2): bytes written, perhaps fewer than requested. In the middle of a `&&` chain
/// a short write ends the chain. At the current position of a regular file, a short write does not
/// advance the position as write(2) does: the kernel retries the rest itself and does not update
/// the position if that fails (measured on Linux 6.18). Writes with an offset are not affected.
inline operation write(descriptor fd, const_buffer buf COIL_LIFETIMEBOUND,
                       ::off_t offset = current_position) noexcept {
    return detail::make_operation(fd, uring::prep::write(fd.number(), buf.data(),
                                                         detail::transfer_size(buf.size()),
                                                         static_cast<std::uint64_t>(offset)));
}

/// Produces a readable compiler error.
template <detail::bare_pointer Data, std::integral Size>
operation write(descriptor fd, Data&& data, Size n, ::off_t offset = current_position)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");
template <std::integral Size>
operation write(descriptor, const_buffer, Size, ::off_t)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");

/// The same for an offset of type std::size_t; warns if it equals the length of the buffer.
template <std::same_as<std::size_t> Offset>
inline operation write(descriptor fd, const_buffer buf COIL_LIFETIMEBOUND, Offset offset) noexcept
    COIL_WARN_IF(offset != 0 && offset == buf.size(),
                 "the argument after the buffer is the offset; the length is part of the buffer") {
    return write(fd, buf, static_cast<::off_t>(offset));
}

/// readv(2), preadv(2). The iovec array must outlive the await.
inline operation readv(descriptor fd, std::span<const ::iovec> iov COIL_LIFETIMEBOUND,
                       ::off_t offset = current_position) noexcept {
    return detail::make_operation(fd, uring::prep::readv(fd.number(), iov.data(),
                                                         static_cast<unsigned>(iov.size()),
                                                         static_cast<std::uint64_t>(offset)));
}

/// Produce readable compiler errors.
operation readv(...) COIL_DELETE("readv and writev take an array of iovec: readv(fd, parts)");
operation writev(...) COIL_DELETE("readv and writev take an array of iovec: writev(fd, parts)");

/// writev(2), pwritev(2). The iovec array must outlive the await.
inline operation writev(descriptor fd, std::span<const ::iovec> iov COIL_LIFETIMEBOUND,
                        ::off_t offset = current_position) noexcept {
    return detail::make_operation(fd, uring::prep::writev(fd.number(), iov.data(),
                                                          static_cast<unsigned>(iov.size()),
                                                          static_cast<std::uint64_t>(offset)));
}

/// read(2), pread(2) into a registered buffer, whose pages the kernel need not look up. `buf` must
/// lie within the memory registered as number `buf_index`; otherwise -EFAULT.
///
/// IORING_OP_READ_FIXED (Linux 5.1).
inline operation read_fixed(descriptor fd, mutable_buffer buf COIL_LIFETIMEBOUND, ::off_t offset,
                            unsigned buf_index) noexcept {
    return detail::make_operation(fd, uring::prep::read_fixed(fd.number(), buf.data(),
                                                              detail::transfer_size(buf.size()),
                                                              static_cast<std::uint64_t>(offset),
                                                              detail::buffer_number(buf_index)));
}

/// write(2), pwrite(2) from a registered buffer, like read_fixed. In the middle of a `&&` chain a
/// short write ends the chain.
///
/// IORING_OP_WRITE_FIXED (Linux 5.1).
inline operation write_fixed(descriptor fd, const_buffer buf COIL_LIFETIMEBOUND, ::off_t offset,
                             unsigned buf_index) noexcept {
    return detail::make_operation(fd, uring::prep::write_fixed(fd.number(), buf.data(),
                                                               detail::transfer_size(buf.size()),
                                                               static_cast<std::uint64_t>(offset),
                                                               detail::buffer_number(buf_index)));
}

/// openat(2): a descriptor, which is closed if the awaiting coroutine is destroyed meanwhile.
/// `path` must outlive the await.
///
/// Opening a FIFO does not always wait as open(2) does. If the name is in the kernel's cache and
/// neither O_CREAT nor O_TRUNC is given, the kernel opens it as if O_NONBLOCK were given (measured
/// on Linux 6.18; the descriptor does not get that flag). O_RDONLY then returns a descriptor before
/// there is a writer, for which a read waits, and O_WRONLY fails with -ENXIO if there is no reader.
/// io::force_async(openat(...)) always waits, on one of the kernel's workers.
inline descriptor_operation openat(int dirfd, path_argument path COIL_LIFETIMEBOUND, int flags,
                                   ::mode_t mode = 0) noexcept {
    return detail::make_descriptor_operation(uring::prep::openat(dirfd, path.c_str(), flags, mode));
}

/// open(2): openat relative to the current directory.
inline descriptor_operation open(path_argument path COIL_LIFETIMEBOUND, int flags,
                                 ::mode_t mode = 0) noexcept {
    return openat(AT_FDCWD, path, flags, mode);
}

/// openat2(2): a descriptor, like openat. `path` and `how` must outlive the await.
inline descriptor_operation openat2(int dirfd, path_argument path COIL_LIFETIMEBOUND,
                                    const ::open_how* how, std::size_t size) noexcept {
    return detail::make_descriptor_operation(uring::prep::openat2(dirfd, path.c_str(), how, size));
}

/// close(2): 0. The descriptor is closed even if the call fails, unless the error is -ECANCELED or
/// -EBADF. The slot of a direct descriptor is free afterwards.
inline operation close(descriptor fd) noexcept {
#if COIL_ASSERTIONS
    if (!fd.is_direct()) {
        detail::note_closed_by_number(fd.number());
    }
#endif
    return detail::make_operation(
        fd.is_direct() ? detail::request_in_table_of(
                             fd, uring::prep::close_direct(static_cast<unsigned>(fd.number())))
                       : uring::prep::close(fd.number()));
}

/// A round trip through the kernel without effect: 0.
inline operation nop() noexcept { return detail::make_operation(uring::prep::nop()); }

/// poll(2) on one descriptor: returns the ready events once one of `events` (POLLIN, POLLOUT, ...),
/// POLLERR or POLLHUP is ready.
inline operation poll(descriptor fd, unsigned events) noexcept {
    return detail::make_operation(fd, uring::prep::poll_add(fd.number(), events));
}

} // namespace coil::io
