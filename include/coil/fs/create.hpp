#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Creating directories. <coil/fs/status.hpp> describes the two forms of each function, errors and
// cancellation.

namespace coil::fs {

/// Creates a directory with all permissions that the umask permits. Returns false without an error
/// if it already exists. Uses IORING_OP_MKDIRAT (Linux 5.15).
task<bool> create_directory(path p);
task<bool> create_directory(path p, std::error_code& ec);

/// The same with the permissions of `existing`, as far as the umask permits.
task<bool> create_directory(path p, path existing);
task<bool> create_directory(path p, path existing, std::error_code& ec);

/// Creates a directory and its missing ancestors. Returns true if it created the last one, and
/// false without an error if that already existed. If several tasks create the same path
/// concurrently, all succeed and one gets true.
///
/// Existing components may be symlinks to directories. Below the deepest existing directory,
/// components are created relative to descriptors. A symlink that appears there during the call is
/// not followed; the call fails (std::errc::not_a_directory). Directories created before an error
/// or a cancellation remain.
task<bool> create_directories(path p);
task<bool> create_directories(path p, std::error_code& ec);

} // namespace coil::fs
