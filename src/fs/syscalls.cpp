#include "syscalls.hpp"

#include <linux/xattr.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

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

int get_access_list(int fd, char* into, std::size_t size) noexcept {
    constexpr const char* name = XATTR_NAME_POSIX_ACL_ACCESS;
    if (is_in_world()) {
        return -EOPNOTSUPP;
    }
    const int n = checked(::fgetxattr(fd, name, into, size));
    if (n != -EBADF) {
        return n;
    }
    return checked(::getxattr(proc_name(fd).c_str(), name, into, size));
}

int set_access_list(int fd, const char* list, std::size_t size) noexcept {
    return is_in_world() ? -EOPNOTSUPP
                         : checked(::fsetxattr(fd, XATTR_NAME_POSIX_ACL_ACCESS, list, size, 0));
}

int remove_access_list(int fd) noexcept {
    return is_in_world() ? -EOPNOTSUPP : checked(::fremovexattr(fd, XATTR_NAME_POSIX_ACL_ACCESS));
}

} // namespace coil::fs::detail::sys
