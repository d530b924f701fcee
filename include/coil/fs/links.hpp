#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Symbolic and hard links. <coil/fs/status.hpp> describes the two forms of each function, errors
// and cancellation.

namespace coil::fs {

/// Creates a symlink `new_symlink` to `to`, which need not exist. A relative `to` is resolved from
/// the directory of `new_symlink`. Uses IORING_OP_SYMLINKAT (Linux 5.15).
task<> create_symlink(path to, path new_symlink);
task<> create_symlink(path to, path new_symlink, std::error_code& ec);

/// The same; on Linux, symlinks to directories are not special.
task<> create_directory_symlink(path to, path new_symlink);
task<> create_directory_symlink(path to, path new_symlink, std::error_code& ec);

/// Creates `new_hard_link` as another name of `to`, of the symlink itself if `to` is one. Uses
/// IORING_OP_LINKAT (Linux 5.15).
task<> create_hard_link(path to, path new_hard_link);
task<> create_hard_link(path to, path new_hard_link, std::error_code& ec);

/// The content of a symlink; std::errc::invalid_argument if it is not one. Runs on the blocking
/// pool: io_uring has no readlink(2). On error: an empty path.
task<path> read_symlink(path p);
task<path> read_symlink(path p, std::error_code& ec);

/// Creates `new_symlink` with the content of `existing_symlink`. One job on the blocking pool.
task<> copy_symlink(path existing_symlink, path new_symlink);
task<> copy_symlink(path existing_symlink, path new_symlink, std::error_code& ec);

} // namespace coil::fs
