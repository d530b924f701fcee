#include "syscalls.hpp"

#include <sys/sysmacros.h>

namespace coil::fs::detail::sys {

namespace {

::timespec time_of(const struct ::statx_timestamp& t) noexcept {
    return {static_cast<::time_t>(t.tv_sec), static_cast<long>(t.tv_nsec)};
}

} // namespace

int stat_in(uring::backend& world, int dirfd, const char* path, int flags,
            struct ::stat* into) noexcept {
    struct ::statx found{};
    const int result =
        world.perform(uring::prep::statx(dirfd, path, flags, STATX_BASIC_STATS, &found));
    if (result < 0) {
        return result;
    }
    *into = {};
    into->st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
    into->st_ino = found.stx_ino;
    into->st_mode = found.stx_mode;
    into->st_nlink = found.stx_nlink;
    into->st_uid = found.stx_uid;
    into->st_gid = found.stx_gid;
    into->st_rdev = makedev(found.stx_rdev_major, found.stx_rdev_minor);
    into->st_size = static_cast<::off_t>(found.stx_size);
    into->st_blksize = static_cast<::blksize_t>(found.stx_blksize);
    into->st_blocks = static_cast<::blkcnt_t>(found.stx_blocks);
    into->st_atim = time_of(found.stx_atime);
    into->st_mtim = time_of(found.stx_mtime);
    into->st_ctim = time_of(found.stx_ctime);
    return 0;
}

} // namespace coil::fs::detail::sys
