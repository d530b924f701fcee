#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <system_error>

namespace coil::fs {

/// Deletes `p` and, if it is a directory, all that is in it; gives how many files and directories
/// that were: 0 when there was nothing. Symbolic links are deleted, not followed, `p` included:
/// "link/" is refused with ENOTDIR, and a `p` that ends in "." or "..", which no name can remove,
/// with EINVAL, before anything is deleted.
///
/// A few jobs of default_blocking_pool() work on it at once, each for about half a millisecond at a
/// time; directories are opened relative to each other and never through a symbolic link, so that
/// nothing outside is deleted when somebody exchanges directories for links meanwhile. The number
/// of open descriptors is bounded (64, fewer where RLIMIT_NOFILE is low), whatever the depth. What
/// others delete meanwhile is no error; what they add is deleted too, within limits.
///
/// Errors: the first that is met ends it, as with std::filesystem::remove_all. The function throws
/// filesystem_error with `p`, and as second path what could not be deleted; the other one sets `ec`
/// (which must outlive the await) and gives static_cast<std::uintmax_t>(-1).
///
/// Threading: on a context. Cancellation: ends within a slice with std::errc::operation_canceled;
/// what has been deleted is gone.
///
/// std::filesystem::remove_all, [fs.op.remove.all]; unlinkat(2)
[[nodiscard("did you forget to co_await?")]] task<std::uintmax_t> remove_all(path p);
[[nodiscard("did you forget to co_await?")]] task<std::uintmax_t> remove_all(path p,
                                                                             std::error_code& ec);

} // namespace coil::fs
