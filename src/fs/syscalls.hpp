#pragma once

#include <coil/context/detail/perform.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

// The synchronous system calls of coil::fs: executed by Linux or, on a context whose backend has
// files of its own (uring::backend::has_own_world), by that backend. Arguments as in the man pages;
// all return a value ≥ 0 or -errno. Calls that the backend does not support return -EOPNOTSUPP.
// Files are opened by opening.hpp.

namespace coil::fs::detail::sys {

using coil::detail::current_world;

/// Converts the result of a system call.
template <class T>
[[nodiscard]] int checked(T result) noexcept {
    return result < 0 ? -errno : static_cast<int>(result);
}

/// The name of an open file below /proc; exists only if /proc is mounted.
class proc_name {
public:
    explicit proc_name(int fd) noexcept {
        std::snprintf(text_, sizeof text_, "/proc/self/fd/%d", fd);
    }
    [[nodiscard]] const char* c_str() const noexcept { return text_; }

private:
    char text_[32];
};

/// For calls that a simulated world does not support.
[[nodiscard]] inline bool is_in_world() noexcept { return current_world() != nullptr; }

/// statx(2) in a simulated world, converted to the result of stat(2).
int stat_in(uring::backend& world, int dirfd, const char* path, int flags,
            struct ::stat* into) noexcept;

inline int close(int fd) noexcept { return coil::detail::close_descriptor(fd); }

inline int fstatat(int dirfd, const char* path, struct ::stat* into, int flags) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return stat_in(*world, dirfd, path, flags, into);
    }
    return checked(::fstatat(dirfd, path, into, flags));
}

inline int fstat(int fd, struct ::stat* into) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return stat_in(*world, fd, "", AT_EMPTY_PATH, into);
    }
    return checked(::fstat(fd, into));
}

inline int statx(int dirfd, const char* path, int flags, unsigned mask,
                 struct ::statx* into) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::statx(dirfd, path, flags, mask, into));
    }
    return checked(::statx(dirfd, path, flags, mask, into));
}

inline int unlinkat(int dirfd, const char* path, int flags) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::unlinkat(dirfd, path, flags));
    }
    return checked(::unlinkat(dirfd, path, flags));
}

inline int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::renameat(from_at, from, to_at, to, 0));
    }
    return checked(::renameat(from_at, from, to_at, to));
}

inline int mkdirat(int dirfd, const char* path, ::mode_t mode) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::mkdirat(dirfd, path, mode));
    }
    return checked(::mkdirat(dirfd, path, mode));
}

inline int symlinkat(const char* text, int dirfd, const char* path) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::symlinkat(text, dirfd, path));
    }
    return checked(::symlinkat(text, dirfd, path));
}

inline int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::linkat(from_at, from, to_at, to, flags));
    }
    return checked(::linkat(from_at, from, to_at, to, flags));
}

/// As with readlink(2), the text is not zero-terminated.
inline int readlinkat(int dirfd, const char* path, char* text, std::size_t size) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::readlinkat(dirfd, path, text, size));
    }
    return checked(::readlinkat(dirfd, path, text, size));
}

inline int faccessat(int dirfd, const char* path, int mode, int flags) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::faccessat(dirfd, path, mode, flags));
    }
    return checked(::faccessat(dirfd, path, mode, flags));
}

inline int fchmod(int fd, ::mode_t mode) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::fchmod(fd, mode));
    }
    return checked(::fchmod(fd, mode));
}

inline int fchmodat(int dirfd, const char* path, ::mode_t mode, int flags) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::fchmodat(dirfd, path, mode, flags));
    }
    return checked(::fchmodat(dirfd, path, mode, flags));
}

inline int fchown(int fd, ::uid_t owner, ::gid_t group) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::fchownat(fd, nullptr, owner, group, 0));
    }
    return checked(::fchown(fd, owner, group));
}

inline int fchownat(int dirfd, const char* path, ::uid_t owner, ::gid_t group, int flags) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::fchownat(dirfd, path, owner, group, flags));
    }
    return checked(::fchownat(dirfd, path, owner, group, flags));
}

inline int futimens(int fd, const ::timespec* times) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::utimensat(fd, nullptr, times, 0));
    }
    return checked(::futimens(fd, times));
}

inline int utimensat(int dirfd, const char* path, const ::timespec* times, int flags) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::utimensat(dirfd, path, times, flags));
    }
    return checked(::utimensat(dirfd, path, times, flags));
}

inline int statvfs(const char* path, struct ::statvfs* into) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::statvfs(AT_FDCWD, path, into));
    }
    return checked(::statvfs(path, into));
}

inline int fstatvfs(int fd, struct ::statvfs* into) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::statvfs(fd, nullptr, into));
    }
    return checked(::fstatvfs(fd, into));
}

// The access control list of a file (acl(5)), as in its extended attribute. A simulated world has
// none.

/// Returns its size; with `size` 0, copies nothing. `fd` may have been opened with O_PATH.
int get_access_list(int fd, char* into, std::size_t size) noexcept;
int set_access_list(int fd, const char* list, std::size_t size) noexcept;
int remove_access_list(int fd) noexcept;

/// geteuid(2); in a simulated world all processes belong to root.
inline ::uid_t effective_user() noexcept { return is_in_world() ? 0 : ::geteuid(); }

inline int fsync(int fd) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::fsync(fd));
    }
    return checked(::fsync(fd));
}

inline int ftruncate(int fd, ::off_t size) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::ftruncate(fd, static_cast<std::uint64_t>(size)));
    }
    return checked(::ftruncate(fd, size));
}

/// Advises the kernel that the file will be read from beginning to end.
inline void expect_sequential(int fd) noexcept {
    if (!is_in_world()) {
        ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
}

/// Returns the position, or -errno.
inline ::off_t lseek(int fd, ::off_t offset, int whence) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        std::int64_t at = 0;
        const int error = world->perform(uring::prep::lseek(fd, offset, whence, &at));
        return error < 0 ? error : at;
    }
    const ::off_t at = ::lseek(fd, offset, whence);
    return at < 0 ? -errno : at;
}

inline int getdents64(int fd, std::byte* buffer, std::size_t size) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::getdents64(fd, buffer, size));
    }
    return checked(::syscall(SYS_getdents64, fd, buffer, size));
}

// With `offset` -1: read(2) and write(2) at the current position.

inline ::ssize_t pread(int fd, void* to, std::size_t size, ::off_t offset) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::read(fd, to, uring::prep::detail::io_length(size),
                                                static_cast<std::uint64_t>(offset)));
    }
    const ::ssize_t n = offset == -1 ? ::read(fd, to, size) : ::pread(fd, to, size, offset);
    return n < 0 ? -errno : n;
}

inline ::ssize_t pwrite(int fd, const void* from, std::size_t size, ::off_t offset) noexcept {
    if (auto* const world = current_world()) [[unlikely]] {
        return world->perform(uring::prep::write(fd, from, uring::prep::detail::io_length(size),
                                                 static_cast<std::uint64_t>(offset)));
    }
    const ::ssize_t n = offset == -1 ? ::write(fd, from, size) : ::pwrite(fd, from, size, offset);
    return n < 0 ? -errno : n;
}

} // namespace coil::fs::detail::sys
