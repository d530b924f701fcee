#pragma once

#include "call.hpp"

#include <coil/io/metadata.hpp>

#include <fcntl.h>
#include <sys/stat.h>

namespace coil::fs::detail {

/// statx(2) as stat(2) and, with AT_SYMLINK_NOFOLLOW, lstat(2) call it. `p` and `into` must outlive
/// the await.
inline task<io_result> stat(int dirfd, const path& p, int flags, unsigned mask,
                            struct ::statx& into) {
    flags |= AT_NO_AUTOMOUNT;
    return ring_or_thread(uring::opcode::statx, io::statx(dirfd, p, flags, mask, &into),
                          [dirfd, &p, flags, mask, &into] {
                              return checked(::statx(dirfd, p.c_str(), flags, mask, &into));
                          });
}

/// Whether that error of stat(2) says that nothing is there.
inline bool is_not_found(int result) noexcept { return result == -ENOENT || result == -ENOTDIR; }

} // namespace coil::fs::detail
