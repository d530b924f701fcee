#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Paths that the file system completes. The two forms of each function, their errors and
// cancellation: see <coil/fs/status.hpp>. What asks about each component of a path does so in one
// job on the blocking pool. Error: an empty path.

namespace coil::fs {

/// The absolute path of what `p` leads to, without symlinks, `.` and `..`. It must exist.
task<path> canonical(path p);
task<path> canonical(path p, std::error_code& ec);

/// The same of as much of `p` as exists; the rest is appended and normalised.
task<path> weakly_canonical(path p);
task<path> weakly_canonical(path p, std::error_code& ec);

/// `p` below the current directory unless it is absolute. Asks the kernel for that directory's name
/// only, which never blocks: at once, on the context. An empty path is an error
/// (std::errc::invalid_argument).
task<path> absolute(path p);
task<path> absolute(path p, std::error_code& ec);

/// weakly_canonical(p) as seen from weakly_canonical(base), or from the current directory; empty
/// when there is no way.
task<path> relative(path p);
task<path> relative(path p, std::error_code& ec);
task<path> relative(path p, path base);
task<path> relative(path p, path base, std::error_code& ec);

/// The same, but where there is no way the first of the two paths.
task<path> proximate(path p);
task<path> proximate(path p, std::error_code& ec);
task<path> proximate(path p, path base);
task<path> proximate(path p, path base, std::error_code& ec);

/// The current directory of the process. At once, on the context.
task<path> current_path();
task<path> current_path(std::error_code& ec);

/// Changes it, for all threads of the process: chdir(2), on the blocking pool. Relative paths of
/// operations that are under way are resolved from the one or the other.
task<> current_path(path p);
task<> current_path(path p, std::error_code& ec);

/// The directory for temporary files: $TMPDIR, $TMP, $TEMP, $TEMPDIR, or /tmp, which must be a
/// directory. The environment is read on the context.
task<path> temp_directory_path();
task<path> temp_directory_path(std::error_code& ec);

} // namespace coil::fs
