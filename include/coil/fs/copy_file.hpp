#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <functional>
#include <system_error>
#include <utility>

namespace coil::fs {

/// Told how much of a file is copied: bytes, holes included. At the end both are equal.
using copy_file_progress = std::function<void(std::uintmax_t done, std::uintmax_t total)>;

/// std::filesystem::copy_file: whether the file was copied. Links are followed; the target gets the
/// source's permissions, its set-user-ID and set-group-ID bits only where it has the same owner, or
/// group; what `options` make of a target that is there is as in [fs.op.copy.file].
///
/// Where the file system can, the two share their blocks (ioctl_ficlonerange(2)); otherwise the
/// kernel copies (copy_file_range(2), sendfile(2)). Holes stay holes. It is done on the blocking
/// pool, some MiB at a time.
///
/// `progress` is called on the context of the awaiting task, after every 16 MiB or so and once at
/// the end; an exception from it ends the copying and comes out of the await.
///
/// Errors: filesystem_error with both paths, or `ec`, which must outlive the await; the same ones
/// as libstdc++'s. Cancellation: std::errc::operation_canceled, within some MiB. After an error,
/// ENOSPC for example, or a cancellation a part of the target is there, as with
/// std::filesystem::copy_file.
task<bool> copy_file(path from, path to, copy_options options, copy_file_progress progress);
task<bool> copy_file(path from, path to, copy_options options, copy_file_progress progress,
                     std::error_code& ec);

inline task<bool> copy_file(path from, path to, copy_options options = copy_options::none) {
    return copy_file(std::move(from), std::move(to), options, copy_file_progress());
}
inline task<bool> copy_file(path from, path to, copy_options options, std::error_code& ec) {
    return copy_file(std::move(from), std::move(to), options, copy_file_progress(), ec);
}
inline task<bool> copy_file(path from, path to, std::error_code& ec) {
    return copy_file(std::move(from), std::move(to), copy_options::none, copy_file_progress(), ec);
}

} // namespace coil::fs
