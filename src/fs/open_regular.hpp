#pragma once

#include "owned_descriptor.hpp"
#include "stat.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coil::fs::detail {

/// A result of open_regular(), besides -errno: another process holds a lease on the file (fcntl(2))
/// and has been asked to release it. Try again later, as lease_wait says.
inline constexpr int leased = -4096;

/// Whether only this user and root can rename or create entries in the directory.
inline bool is_private(const struct ::stat& directory) noexcept {
    return (directory.st_uid == sys::effective_user() || directory.st_uid == 0) &&
           (directory.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}
inline bool is_private(int directory) noexcept {
    struct ::stat status{};
    return sys::fstat(directory, &status) == 0 && is_private(status);
}

/// Opens a regular file through a descriptor with O_PATH, which opens no device: opening one may
/// have side effects. Where /proc is not mounted, opens it by its name and compares the two files:
/// a device that has just taken the name is opened in this case, and closed again. With O_CREAT,
/// for a file that was missing: returns -EEXIST if it has appeared.
template <class Open>
owned_descriptor open_checked(Open open, int at, const char* name, int flags) {
    const owned_descriptor named(open(at, name, O_PATH | (flags & O_NOFOLLOW)));
    if (named == -ENOENT && (flags & O_CREAT) != 0) {
        return owned_descriptor(open(at, name, flags));
    }
    if (named >= 0 && (flags & O_CREAT) != 0) {
        return owned_descriptor(-EEXIST);
    }
    struct ::stat expected{};
    if (const int r = named < 0 ? int(named) : sys::fstat(named, &expected); r < 0) {
        return owned_descriptor(r);
    }
    if (!S_ISREG(expected.st_mode)) {
        return owned_descriptor(S_ISLNK(expected.st_mode) ? -ELOOP : -EINVAL);
    }
    owned_descriptor opened(open(AT_FDCWD, sys::proc_name(named).c_str(), flags & ~O_NOFOLLOW));
    if (opened != -ENOENT) {
        return opened;
    }
    opened = owned_descriptor(open(at, name, flags));
    struct ::stat found{};
    if (const int r = opened < 0 ? int(opened) : sys::fstat(opened, &found); r < 0) {
        return owned_descriptor(r);
    }
    return is_same(expected, found) ? std::move(opened) : owned_descriptor(-ENOENT);
}

/// Opens a regular file by calling `open(at, name, flags)`, which is open_entry(). Returns -EINVAL
/// if the file is not regular, and never waits: neither for the other end of a FIFO nor for the
/// holder of a lease (see `leased`). `status` is that of the opened file. Does not truncate:
/// O_TRUNC would take effect before the type is checked.
///
/// `is_own`: `name` was a regular file, and its directory is_private(). Otherwise another user may
/// exchange it for a device at any time.
template <class Open>
owned_descriptor open_regular(Open open, int at, const char* name, int flags, bool is_own,
                              struct ::stat& status) {
    flags |= O_NONBLOCK | O_NOCTTY;
    owned_descriptor opened = is_own || sys::is_in_world() ? owned_descriptor(open(at, name, flags))
                                                           : open_checked(open, at, name, flags);
    if (opened == -EAGAIN) { // a lease, or a device that refuses to be opened
        const owned_descriptor named(open(at, name, O_PATH | (flags & O_NOFOLLOW)));
        const bool is_regular =
            named >= 0 && sys::fstat(named, &status) == 0 && S_ISREG(status.st_mode);
        return is_regular ? owned_descriptor(leased) : std::move(opened);
    }
    if (opened < 0) {
        return opened;
    }
    if (const int r = sys::fstat(opened, &status); r < 0) {
        return owned_descriptor(r);
    }
    return S_ISREG(status.st_mode) ? std::move(opened) : owned_descriptor(-EINVAL);
}

} // namespace coil::fs::detail
