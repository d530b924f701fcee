#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Links, symbolic and hard. The two forms of each function, their errors and cancellation: see
// <coil/fs/status.hpp>.

namespace coil::fs {

/// Makes `new_symlink` a symlink that says `to`, whether or not that exists, and from where
/// `new_symlink` lies if it is relative. By IORING_OP_SYMLINKAT (Linux 5.15).
task<> create_symlink(path to, path new_symlink);
task<> create_symlink(path to, path new_symlink, std::error_code& ec);

/// The same; on Linux symlinks to directories are as any others.
task<> create_directory_symlink(path to, path new_symlink);
task<> create_directory_symlink(path to, path new_symlink, std::error_code& ec);

/// Makes `new_hard_link` a further name of `to`; of a symlink, of the symlink itself. By
/// IORING_OP_LINKAT (Linux 5.15).
task<> create_hard_link(path to, path new_hard_link);
task<> create_hard_link(path to, path new_hard_link, std::error_code& ec);

/// What a symlink says. What is not a symlink is std::errc::invalid_argument. On the blocking pool:
/// io_uring has no readlink(2). Error: an empty path.
task<path> read_symlink(path p);
task<path> read_symlink(path p, std::error_code& ec);

/// Makes `new_symlink` say what `existing_symlink` does. One job on the blocking pool.
task<> copy_symlink(path existing_symlink, path new_symlink);
task<> copy_symlink(path existing_symlink, path new_symlink, std::error_code& ec);

} // namespace coil::fs
