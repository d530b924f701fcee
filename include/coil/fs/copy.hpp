#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <functional>
#include <system_error>
#include <type_traits>

namespace coil::fs {

/// Copies a file, a symbolic link or, depending on `options`, a directory and its content. All
/// options of std::filesystem::copy are supported with their standard meaning.
///
/// A directory is copied by a few concurrent jobs of default_blocking_pool(), each of which runs
/// for about half a millisecond at a time. Directories are opened relative to each other and
/// without following symbolic links, except those that the options say to follow. Type, mode, owner
/// and size are those of the opened file, even if the name is replaced meanwhile. The number of
/// open descriptors is bounded. Data is cloned, or copied in the kernel, if the file systems
/// support it; holes are preserved. If other processes hold leases on files (fcntl(2)), the task is
/// suspended until they are released, for at most a minute altogether (then EAGAIN).
///
/// A file is copied up to the end that it has when the copy reaches it, as by cp(1): the copy of a
/// file to which others append faster than it is copied grows without limit. timeout() limits the
/// time.
///
/// Mode: the set-user-ID bit is copied only if the copy has the same owner, the set-group-ID bit
/// only if it has the same group; neither is copied from a mount with `nosuid`, or if the original
/// changes during the copy. An access control list (acl(5)) is not copied: group and others get
/// only the permissions that all of its entries grant. If the list cannot be read, they get no
/// permissions; if a seccomp filter forbids reading it (EPERM, ENOSYS), others keep their
/// permissions and the group gets no more than others. A list that the copy inherits from its
/// directory stays, with the group bits as its mask.
///
/// Errors: the first error ends the copy; what has been copied remains. The overloads without an
/// error_code throw filesystem_error with both paths; `ec` must outlive the await. Errors are those
/// of libstdc++, with two exceptions: copying a directory into itself fails with EINVAL, and
/// copying it through a link to one of its ancestors fails with ELOOP, whereas the standard's
/// functions recurse until a path is too long.
///
/// Threading: on a context. Cancellation: the jobs end within about a millisecond; the error is
/// std::errc::operation_canceled. A file being copied remains incomplete.
///
/// std::filesystem::copy, [fs.op.copy]; copy_file_range(2)
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to,
                                                         copy_options options = copy_options::none);
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to, std::error_code& ec);
[[nodiscard("did you forget to co_await?")]] task<> copy(path from, path to, copy_options options,
                                                         std::error_code& ec);

/// Produce readable compiler errors.
task<> copy(const path&) COIL_DELETE("pass both paths: copy(from, to)");
template <class Options>
    requires(!std::is_convertible_v<Options, copy_options> &&
             !std::is_convertible_v<Options, std::error_code&>)
task<> copy(const path&, const path&, Options&&)
    COIL_DELETE("options are values of copy_options: copy(from, to, copy_options::recursive)");

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
    /// Also copy the owner and the group, as far as this process may set them, the set-user-ID and
    /// set-group-ID bits under the conditions of copy(), and, if owner and group could be set, the
    /// access control list. If the group could not be set, the group of the copy gets only the
    /// permissions of others. A list that the copy inherits from its directory is removed. Default
    /// lists of directories are not copied. If `owner` is false, copy_tree() copies none of these,
    /// and directories keep the set-group-ID bit that they have or inherit.
    bool owner = false;
    /// Called on the context about once a millisecond, and at the end. Must not throw.
    std::function<void(const copy_progress&)> progress = {};
};

/// copy() that can preserve more attributes, reports progress, and names in its exception the paths
/// of the entry that failed. A directory gets the mode of the original, subject to the umask, only
/// after its content has been copied, so that read-only directories can be copied. With `times` or
/// `owner`, modes are preserved regardless of the umask. A symbolic link that exists in the target
/// below `to` is not followed; it is an error (ENOTDIR, EINVAL). An existing file below `to` that
/// has other hard links is not overwritten but replaced (rename(2)), so that these keep their
/// content; this requires write permission for its directory (EACCES, EPERM), and a crash before
/// the rename leaves `.coil-<16 hexadecimal digits>.tmp` there.
[[nodiscard("did you forget to co_await?")]] task<copy_progress>
copy_tree(path from, path to, copy_tree_options options = {});
[[nodiscard("did you forget to co_await?")]] task<copy_progress>
copy_tree(path from, path to, copy_tree_options options, std::error_code& ec);
[[nodiscard("did you forget to co_await?")]] task<copy_progress> copy_tree(path from, path to,
                                                                           std::error_code& ec);

} // namespace coil::fs
