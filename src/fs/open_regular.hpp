#pragma once

#include "owned_descriptor.hpp"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

namespace coil::fs::detail {

/// Opens a regular file by calling `open(at, name, flags)`, which is openat(2). Returns -EINVAL if
/// the file is not regular, and never waits for the other end of a FIFO. `status` is that of the
/// opened file. Does not truncate: O_TRUNC would take effect before the type is checked.
template <class Open>
owned_descriptor open_regular(Open open, int at, const char* name, int flags,
                              struct ::stat& status) {
    owned_descriptor opened(open(at, name, flags | O_NONBLOCK | O_NOCTTY));
    if (opened ==
        -EAGAIN) { // another process holds a lease (fcntl(2)): a blocking open waits for its end
        const owned_descriptor path(open(at, name, O_PATH | (flags & O_NOFOLLOW)));
        if (path < 0 || sys::fstat(path, &status) < 0 || !S_ISREG(status.st_mode)) {
            return opened;
        }
        const std::string by = "/proc/self/fd/" + std::to_string(path);
        opened =
            owned_descriptor(open(AT_FDCWD, by.c_str(), flags & ~(O_NOFOLLOW | O_CREAT | O_EXCL)));
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
