#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Giving a file another name, and taking its name away. The two forms of each function, their
// errors and cancellation: see <coil/fs/status.hpp>.

namespace coil::fs {

/// rename(2): atomic, and replaces what `to` names: a file by a file, an empty directory by a
/// directory. A symlink is renamed or replaced itself. By IORING_OP_RENAMEAT (Linux 5.11).
task<> rename(path from, path to);
task<> rename(path from, path to, std::error_code& ec);

/// Removes a file or an empty directory; of a symlink, the symlink. False, and no error, when there
/// was none. By IORING_OP_UNLINKAT (Linux 5.11).
task<bool> remove(path p);
task<bool> remove(path p, std::error_code& ec);

} // namespace coil::fs
