#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <functional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil::fs {

/// Progress callback: bytes copied so far and in total, holes included. Both are equal at the end.
using copy_file_progress = std::function<void(std::uintmax_t done, std::uintmax_t total)>;

/// std::filesystem::copy_file: returns whether the file was copied. Links are followed. The target
/// gets the source's permissions, but the set-user-ID bit only if it has the same owner, and the
/// set-group-ID bit only if it has the same group; neither if the source is on a mount with
/// `nosuid` or changes during the copy. An access control list (acl(5)) is not copied: group and
/// others get only the permissions that all of its entries grant (none if the list cannot be read;
/// if a seccomp filter forbids reading it, the group gets no more than others). A list that the
/// target inherits from its directory stays, with the group bits as its mask. `options` decide what
/// happens to an existing target, as in [fs.op.copy.file], even if it appears during the call.
///
/// If the file system supports it, the files share their blocks (ioctl_ficlonerange(2)); otherwise
/// the kernel copies (copy_file_range(2), sendfile(2)). Holes are preserved. The copy runs on the
/// blocking pool, 16 MiB at a time. If another process holds a lease on one of the files
/// (fcntl(2)), the task is suspended until it is released, for at most a minute (then EAGAIN).
///
/// `progress` is called on the context of the awaiting task, about every 16 MiB and once at the
/// end; an exception from it ends the copy and is rethrown from the await.
///
/// Errors: filesystem_error with both paths, or `ec`, which must outlive the await; the same errors
/// as libstdc++. Cancellation: the copy ends after at most a few more MiB, with
/// std::errc::operation_canceled. After an error (ENOSPC, for example) or a cancellation, a partial
/// target remains, as with std::filesystem::copy_file.
task<bool> copy_file(path from, path to, copy_options options, copy_file_progress progress);
task<bool> copy_file(path from, path to, copy_options options, copy_file_progress progress,
                     std::error_code& ec);

COIL_CORO_WRAPPER inline task<bool> copy_file(path from, path to,
                                              copy_options options = copy_options::none) {
    return copy_file(std::move(from), std::move(to), options, copy_file_progress());
}
COIL_CORO_WRAPPER inline task<bool> copy_file(path from, path to, copy_options options,
                                              std::error_code& ec) {
    return copy_file(std::move(from), std::move(to), options, copy_file_progress(), ec);
}
COIL_CORO_WRAPPER inline task<bool> copy_file(path from, path to, std::error_code& ec) {
    return copy_file(std::move(from), std::move(to), copy_options::none, copy_file_progress(), ec);
}

/// Produce readable compiler errors.
task<bool> copy_file(const path&) COIL_DELETE("pass both paths: copy_file(from, to)");
template <class Options>
    requires(!std::is_convertible_v<Options, copy_options> &&
             !std::is_convertible_v<Options, std::error_code&>)
task<bool> copy_file(const path&, const path&, Options&&) COIL_DELETE(
    "options are values of copy_options: copy_file(from, to, copy_options::overwrite_existing)");

} // namespace coil::fs
