#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <system_error>

namespace coil::fs {

/// Removes `p` and, if it is a directory, its content; returns the number of files and directories
/// removed, 0 if `p` does not exist. Symbolic links are removed, not followed, even if `p` is one;
/// "link/" fails with ENOTDIR. A `p` that ends in "." or ".." cannot be removed: it fails with
/// EINVAL before anything is removed, "/" with EBUSY.
///
/// A few concurrent jobs of default_blocking_pool() do the work, each of which runs for about half
/// a millisecond at a time. Directories are opened relative to each other and never through a
/// symbolic link, so that nothing outside is removed if a directory is concurrently replaced by a
/// link. The number of open descriptors is bounded (64, fewer if RLIMIT_NOFILE is low) at any
/// depth. Entries that other processes remove meanwhile are not errors; entries that they add are
/// also removed, within limits.
///
/// Errors: the first error ends the call, as with std::filesystem::remove_all. The first overload
/// throws filesystem_error with `p` and, as second path, the entry that could not be removed. The
/// second one sets `ec` (which must outlive the await) and returns static_cast<std::uintmax_t>(-1).
///
/// Threading: on a context. Cancellation: the jobs end within about a millisecond; the error is
/// std::errc::operation_canceled. The removal of earlier entries is not undone.
///
/// std::filesystem::remove_all, [fs.op.remove.all]; unlinkat(2)
[[nodiscard("did you forget to co_await?")]] task<std::uintmax_t> remove_all(path p);
[[nodiscard("did you forget to co_await?")]] task<std::uintmax_t> remove_all(path p,
                                                                             std::error_code& ec);

} // namespace coil::fs
