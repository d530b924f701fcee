#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/config.hpp>
#include <coil/io/path_argument.hpp>
#include <coil/uring/prep.hpp>

#include <fcntl.h>
#include <sys/types.h>

// Operations on directory entries. Every function only describes the call; co_await starts it and
// returns an io_result: 0 or -errno, as the man page says. Paths must outlive the await. The
// functions without `at` resolve relative paths from the current directory, as the system calls do.

namespace coil::io {

/// unlinkat(2). `flags`: AT_REMOVEDIR.
inline operation unlinkat(int dirfd, path_argument path COIL_LIFETIMEBOUND, int flags) noexcept {
    return detail::make_operation(uring::prep::unlinkat(dirfd, path.c_str(), flags));
}

/// unlink(2).
inline operation unlink(path_argument path COIL_LIFETIMEBOUND) noexcept {
    return unlinkat(AT_FDCWD, path, 0);
}

/// rmdir(2).
inline operation rmdir(path_argument path COIL_LIFETIMEBOUND) noexcept {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/// renameat(2), and with `flags` (RENAME_NOREPLACE, RENAME_EXCHANGE) renameat2(2).
inline operation renameat(int olddirfd, path_argument oldpath COIL_LIFETIMEBOUND, int newdirfd,
                          path_argument newpath COIL_LIFETIMEBOUND, unsigned flags = 0) noexcept {
    return detail::make_operation(
        uring::prep::renameat(olddirfd, oldpath.c_str(), newdirfd, newpath.c_str(), flags));
}

/// renameat2(2).
inline operation renameat2(int olddirfd, path_argument oldpath COIL_LIFETIMEBOUND, int newdirfd,
                           path_argument newpath COIL_LIFETIMEBOUND, unsigned flags) noexcept {
    return renameat(olddirfd, oldpath, newdirfd, newpath, flags);
}

/// rename(2).
inline operation rename(path_argument oldpath COIL_LIFETIMEBOUND,
                        path_argument newpath COIL_LIFETIMEBOUND) noexcept {
    return renameat(AT_FDCWD, oldpath, AT_FDCWD, newpath);
}

/// mkdirat(2).
inline operation mkdirat(int dirfd, path_argument path COIL_LIFETIMEBOUND, ::mode_t mode) noexcept {
    return detail::make_operation(uring::prep::mkdirat(dirfd, path.c_str(), mode));
}

/// mkdir(2).
inline operation mkdir(path_argument path COIL_LIFETIMEBOUND, ::mode_t mode) noexcept {
    return mkdirat(AT_FDCWD, path, mode);
}

/// symlinkat(2).
inline operation symlinkat(path_argument target COIL_LIFETIMEBOUND, int newdirfd,
                           path_argument linkpath COIL_LIFETIMEBOUND) noexcept {
    return detail::make_operation(
        uring::prep::symlinkat(target.c_str(), newdirfd, linkpath.c_str()));
}

/// symlink(2).
inline operation symlink(path_argument target COIL_LIFETIMEBOUND,
                         path_argument linkpath COIL_LIFETIMEBOUND) noexcept {
    return symlinkat(target, AT_FDCWD, linkpath);
}

/// linkat(2). `flags`: AT_SYMLINK_FOLLOW, AT_EMPTY_PATH.
inline operation linkat(int olddirfd, path_argument oldpath COIL_LIFETIMEBOUND, int newdirfd,
                        path_argument newpath COIL_LIFETIMEBOUND, int flags) noexcept {
    return detail::make_operation(
        uring::prep::linkat(olddirfd, oldpath.c_str(), newdirfd, newpath.c_str(), flags));
}

/// link(2).
inline operation link(path_argument oldpath COIL_LIFETIMEBOUND,
                      path_argument newpath COIL_LIFETIMEBOUND) noexcept {
    return linkat(AT_FDCWD, oldpath, AT_FDCWD, newpath, 0);
}

} // namespace coil::io
