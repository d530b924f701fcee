#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <system_error>

// Functions that resolve paths. <coil/fs/status.hpp> describes the two forms of each function,
// errors and cancellation. Functions that query each component of a path run as one job on the
// blocking pool. On error: an empty path.

namespace coil::fs {

/// The absolute path of the file that `p` refers to, without symlinks, `.` and `..`. It must exist.
task<path> canonical(path p);
task<path> canonical(path p, std::error_code& ec);

/// The same for the existing prefix of `p`; the rest is appended and normalised.
task<path> weakly_canonical(path p);
task<path> weakly_canonical(path p, std::error_code& ec);

/// `p` if it is absolute, otherwise the current directory followed by `p`. Only queries the name of
/// that directory, which never blocks, so it completes immediately on the context. An empty path is
/// an error (std::errc::invalid_argument).
task<path> absolute(path p);
task<path> absolute(path p, std::error_code& ec);

/// weakly_canonical(p) relative to weakly_canonical(base), or to the current directory; empty if no
/// relative path exists.
task<path> relative(path p);
task<path> relative(path p, std::error_code& ec);
task<path> relative(path p, path base);
task<path> relative(path p, path base, std::error_code& ec);

/// The same, but weakly_canonical(p) if no relative path exists.
task<path> proximate(path p);
task<path> proximate(path p, std::error_code& ec);
task<path> proximate(path p, path base);
task<path> proximate(path p, path base, std::error_code& ec);

/// The current directory of the process; completes immediately.
task<path> current_path();
task<path> current_path(std::error_code& ec);

/// Changes the current directory for all threads of the process: chdir(2), on the blocking pool.
/// The relative paths of operations in flight are resolved from either the old or the new one.
task<> current_path(path p);
task<> current_path(path p, std::error_code& ec);

/// The directory for temporary files: $TMPDIR, $TMP, $TEMP, $TEMPDIR, or /tmp; it must be a
/// directory. The environment is read on the context's thread.
task<path> temp_directory_path();
task<path> temp_directory_path(std::error_code& ec);

} // namespace coil::fs
