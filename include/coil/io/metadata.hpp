#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/path_argument.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

// Metadata, allocation, durability and advice for files. Every function only describes the call;
// co_await starts it and returns an io_result: a value ≥ 0 or -errno, as the man page says. The
// kernel's workers execute these calls (except ftruncate() before Linux 6.9), so a slow disk does
// not block the context.

namespace coil::io {

/// statx(2): 0. `path` and `buf` must outlive the await.
inline operation statx(int dirfd, path_argument path COIL_LIFETIMEBOUND, int flags, unsigned mask,
                       struct ::statx* buf) noexcept {
    return detail::make_operation(uring::prep::statx(dirfd, path.c_str(), flags, mask, buf));
}

/// fsync(2): 0 when data and metadata are on the device. Covers only writes that completed before
/// it; `write && fsync` orders the two.
inline operation fsync(descriptor fd) noexcept {
    return detail::make_operation(fd, uring::prep::fsync(fd.number()));
}

/// fdatasync(2): like fsync, but without metadata that reading the data does not need.
inline operation fdatasync(descriptor fd) noexcept {
    return detail::make_operation(fd, uring::prep::fdatasync(fd.number()));
}

/// sync_file_range(2): 0. Flushes neither metadata nor the device's cache, so it does not make data
/// durable. The ring accepts at most 4 GiB − 1 as `nbytes`: a larger or negative number fails with
/// -EINVAL. 0 means to the end of the file.
inline operation sync_file_range(descriptor fd, ::off_t offset, ::off_t nbytes,
                                 unsigned flags) noexcept {
    uring::sqe request =
        uring::prep::sync_file_range(fd.number(), static_cast<std::uint64_t>(offset),
                                     static_cast<unsigned>(nbytes), static_cast<int>(flags));
    if (nbytes < 0 || nbytes > UINT32_MAX) {
        request.addr = 1; // not defined for this call, so the kernel refuses it with EINVAL
    }
    return detail::make_operation(fd, request);
}

/// fallocate(2): 0.
inline operation fallocate(descriptor fd, int mode, ::off_t offset, ::off_t len) noexcept {
    return detail::make_operation(fd, uring::prep::fallocate(fd.number(), mode,
                                                             static_cast<std::uint64_t>(offset),
                                                             static_cast<std::uint64_t>(len)));
}

/// ftruncate(2): 0. Kernels before 6.9: the system call, immediately.
inline operation ftruncate(descriptor fd, ::off_t length) noexcept {
    return detail::make_operation(
        fd, uring::prep::ftruncate(fd.number(), static_cast<std::uint64_t>(length)));
}

/// posix_fadvise(2): 0 or -errno (the C library's function returns a positive error number).
inline operation fadvise(descriptor fd, ::off_t offset, ::off_t len, int advice) noexcept {
    return detail::make_operation(
        fd, uring::prep::fadvise(fd.number(), static_cast<std::uint64_t>(offset),
                                 static_cast<std::uint64_t>(len), advice));
}

/// madvise(2): 0. The memory must stay mapped until the await returns.
inline operation madvise(void* addr, std::size_t length, int advice) noexcept {
    return detail::make_operation(uring::prep::madvise(addr, length, advice));
}

// ---- extended attributes. Names, paths and values must outlive the await.

/// getxattr(2): the value's length; with an empty buffer the length only.
inline operation getxattr(path_argument path COIL_LIFETIMEBOUND,
                          const char* name COIL_LIFETIMEBOUND,
                          mutable_buffer value COIL_LIFETIMEBOUND) noexcept {
    return detail::make_operation(
        uring::prep::getxattr(path.c_str(), name, value.data(), value.size()));
}

/// setxattr(2): 0. `flags`: XATTR_CREATE, XATTR_REPLACE.
inline operation setxattr(path_argument path COIL_LIFETIMEBOUND,
                          const char* name COIL_LIFETIMEBOUND,
                          const_buffer value COIL_LIFETIMEBOUND, int flags = 0) noexcept {
    return detail::make_operation(
        uring::prep::setxattr(path.c_str(), name, value.data(), value.size(), flags));
}

/// fgetxattr(2), like getxattr.
inline operation fgetxattr(descriptor fd, const char* name COIL_LIFETIMEBOUND,
                           mutable_buffer value COIL_LIFETIMEBOUND) noexcept {
    return detail::make_operation(
        fd, uring::prep::fgetxattr(fd.number(), name, value.data(), value.size()));
}

/// fsetxattr(2), like setxattr.
inline operation fsetxattr(descriptor fd, const char* name COIL_LIFETIMEBOUND,
                           const_buffer value COIL_LIFETIMEBOUND, int flags = 0) noexcept {
    return detail::make_operation(
        fd, uring::prep::fsetxattr(fd.number(), name, value.data(), value.size(), flags));
}

} // namespace coil::io
