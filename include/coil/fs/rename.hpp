#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Renaming and removing files. <coil/fs/status.hpp> describes the two forms of each function,
// errors and cancellation.

namespace coil::fs {

/// rename(2): atomic, and replaces an existing `to`: a file by a file, an empty directory by a
/// directory. Does not follow symlinks. Uses IORING_OP_RENAMEAT (Linux 5.11).
task<> rename(path from, path to);
task<> rename(path from, path to, std::error_code& ec);

/// Produces a readable compiler error.
task<> rename(const path&) COIL_DELETE("pass both paths: rename(from, to)");

/// Removes a file, a symlink (not its target) or an empty directory. Returns false without an error
/// if it does not exist. Uses IORING_OP_UNLINKAT (Linux 5.11).
task<bool> remove(path p);
task<bool> remove(path p, std::error_code& ec);

} // namespace coil::fs
