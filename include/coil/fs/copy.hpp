#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <functional>
#include <system_error>

namespace coil::fs {

/// Copies a file, a symbolic link or, as `options` say, a directory and what is in it: with all
/// options of std::filesystem::copy, which have the standard's meaning.
///
/// A directory is copied by a few jobs of default_blocking_pool() at once, each for about half a
/// millisecond at a time; directories are opened relative to each other and, except for links that
/// the options say to follow, without following symbolic links; kind, mode, owner and size are
/// those of what was opened, whatever comes in its place meanwhile. The number of open descriptors
/// is bounded. The set-user-ID and set-group-ID bits are copied only where the copy has the same
/// owner, or group. Data is cloned, or copied in the kernel, where the file systems can; holes stay
/// holes.
///
/// Errors: the first that is met ends it; what has been copied stays. The functions without an
/// error_code throw filesystem_error with both paths; `ec` must outlive the await. They are those
/// of libstdc++, except that a directory is not copied into itself (EINVAL) nor through a link into
/// one that it is in (ELOOP), where the standard's functions go on until a path is too long.
///
/// Threading: on a context. Cancellation: ends within a slice with std::errc::operation_canceled;
/// a file that is being copied stays cut short.
///
/// std::filesystem::copy, [fs.op.copy]; copy_file_range(2)
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to,
                                                         copy_options options = copy_options::none);
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to, std::error_code& ec);
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to, copy_options options,
                                                         std::error_code& ec);

/// How far a copy is.
struct copy_progress {
    std::uintmax_t entries = 0; ///< files, links and directories that are copied or under way
    std::uintmax_t bytes = 0;   ///< of files' contents, holes included
};

struct copy_tree_options {
    copy_options options = copy_options::recursive | copy_options::copy_symlinks;
    /// Also the times of last access and modification, to the nanosecond.
    bool times = false;
    /// Also owner and group, as far as this process may set them; and the set-user-ID and
    /// set-group-ID bits, where it was. Without, these are not copied.
    bool owner = false;
    /// Called on the context about once a millisecond, and at the end. Must not throw.
    std::function<void(const copy_progress&)> progress;
};

/// copy() that keeps more of what it copies, says how far it is, and names in its exception what
/// could not be copied and to where. Directories that it makes have the mode of the original, as
/// the umask leaves it, only when all that is in them has been copied: so what is read-only can be
/// copied, too. With `times` or `owner` modes are kept whatever the umask. A symbolic link in the
/// target, below `to` itself, is not followed but in the way (ENOTDIR, EINVAL).
[[nodiscard("did you forget to co_await?")]] task<copy_progress>
copy_tree(path from, path to, copy_tree_options options = {});
[[nodiscard("did you forget to co_await?")]] task<copy_progress>
copy_tree(path from, path to, copy_tree_options options, std::error_code& ec);
[[nodiscard("did you forget to co_await?")]] task<copy_progress> copy_tree(path from, path to,
                                                                           std::error_code& ec);

} // namespace coil::fs
