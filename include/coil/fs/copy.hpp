#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <functional>
#include <system_error>

namespace coil::fs {

/// Copies a file, a symbolic link or, depending on `options`, a directory and its content. All
/// options of std::filesystem::copy are supported with their standard meaning.
///
/// A directory is copied by a few concurrent jobs of default_blocking_pool(), each for about half a
/// millisecond at a time. Directories are opened relative to each other and without following
/// symbolic links, except those that the options say to follow. Type, mode, owner and size are
/// those of the opened file, even if the name is replaced meanwhile. The number of open descriptors
/// is bounded. The set-user-ID bit is copied only if the copy has the same owner, the set-group-ID
/// bit only if it has the same group. Data is cloned, or copied in the kernel, if the file systems
/// support it; holes are preserved.
///
/// Errors: the first error ends the copy; what has been copied remains. The overloads without an
/// error_code throw filesystem_error with both paths; `ec` must outlive the await. Errors are those
/// of libstdc++, with two exceptions: copying a directory into itself gives EINVAL, and copying it
/// through a link to one of its ancestors gives ELOOP, where the standard's functions recurse until
/// a path is too long.
///
/// Threading: on a context. Cancellation: the jobs end within about a millisecond;
/// std::errc::operation_canceled. A file being copied remains incomplete.
///
/// std::filesystem::copy, [fs.op.copy]; copy_file_range(2)
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to,
                                                         copy_options options = copy_options::none);
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to, std::error_code& ec);
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to, copy_options options,
                                                         std::error_code& ec);

/// The progress of a copy.
struct copy_progress {
    std::uintmax_t entries = 0; ///< files, links and directories copied or being copied
    std::uintmax_t bytes = 0;   ///< of file contents, holes included
};

/// Options of copy_tree().
struct copy_tree_options {
    copy_options options = copy_options::recursive | copy_options::copy_symlinks;
    /// Also copy the times of last access and modification, to the nanosecond.
    bool times = false;
    /// Also copy the owner and the group, as far as this process may set them, and the set-user-ID
    /// and set-group-ID bits. If false, copy_tree() copies none of these.
    bool owner = false;
    /// Called on the context about once a millisecond, and at the end. Must not throw.
    std::function<void(const copy_progress&)> progress = {};
};

/// copy() that can preserve more attributes, reports progress, and names in its exception the paths
/// of the entry that failed. A directory gets the mode of the original, subject to the umask, only
/// after its content has been copied, so that read-only directories can be copied. With `times` or
/// `owner`, modes are preserved regardless of the umask. A symbolic link that exists in the target
/// below `to` is not followed; it is an error (ENOTDIR, EINVAL).
[[nodiscard("did you forget to co_await?")]] task<copy_progress>
copy_tree(path from, path to, copy_tree_options options = {});
[[nodiscard("did you forget to co_await?")]] task<copy_progress>
copy_tree(path from, path to, copy_tree_options options, std::error_code& ec);
[[nodiscard("did you forget to co_await?")]] task<copy_progress> copy_tree(path from, path to,
                                                                           std::error_code& ec);

} // namespace coil::fs
