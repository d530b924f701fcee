#pragma once

#include "ring_or_pool.hpp"

#include <coil/io/metadata.hpp>

#include <fcntl.h>
#include <sys/stat.h>

namespace coil::fs::detail {

/// statx(2) with the semantics of stat(2) and, with AT_SYMLINK_NOFOLLOW, lstat(2). `p` and `into`
/// must outlive the await.
inline task<io_result> stat(int dirfd, const path& p, int flags, unsigned mask,
                            struct ::statx& into) {
    flags |= AT_NO_AUTOMOUNT;
    return ring_or_thread(uring::opcode::statx, io::statx(dirfd, p, flags, mask, &into),
                          [dirfd, &p, flags, mask, &into] {
                              return sys::statx(dirfd, p.c_str(), flags, mask, &into);
                          });
}

/// Whether `result`, of stat(2), means that the file does not exist.
inline bool is_not_found(int result) noexcept { return result == -ENOENT || result == -ENOTDIR; }

/// Whether both refer to the same file.
inline bool is_same(const struct ::stat& a, const struct ::stat& b) noexcept {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

inline bool is_newer(const ::timespec& a, const ::timespec& b) noexcept {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/// The file type of the type bits of st_mode.
inline file_type type_of_mode(unsigned mode) noexcept {
    switch (mode & S_IFMT) {
    case S_IFREG:
        return file_type::regular;
    case S_IFDIR:
        return file_type::directory;
    case S_IFLNK:
        return file_type::symlink;
    case S_IFBLK:
        return file_type::block;
    case S_IFCHR:
        return file_type::character;
    case S_IFIFO:
        return file_type::fifo;
    case S_IFSOCK:
        return file_type::socket;
    default:
        return file_type::unknown;
    }
}

} // namespace coil::fs::detail
