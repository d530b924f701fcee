#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Making directories. The two forms of each function, their errors and cancellation: see
// <coil/fs/status.hpp>.

namespace coil::fs {

/// Makes a directory, with all permissions that the umask leaves. False, and no error, when there
/// is one. By IORING_OP_MKDIRAT (Linux 5.15).
task<bool> create_directory(path p);
task<bool> create_directory(path p, std::error_code& ec);

/// The same with the permissions of `existing`, those of them that the umask leaves.
task<bool> create_directory(path p, path existing);
task<bool> create_directory(path p, path existing, std::error_code& ec);

/// Makes a directory and those above it that are missing. True when it made the last one. False,
/// and no error, when that was there: of several that make the same path at once all succeed, and
/// one gives true.
///
/// Components that exist may be symlinks to directories. Below a directory that it has made it goes
/// on from that directory's descriptor, and fails (std::errc::not_a_directory) when somebody puts a
/// symlink in its place: it does not follow that to anywhere else. What was made before an error or
/// a cancellation stays.
task<bool> create_directories(path p);
task<bool> create_directories(path p, std::error_code& ec);

} // namespace coil::fs
