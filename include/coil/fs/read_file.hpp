#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <string>
#include <system_error>

namespace coil::fs {

/// Reads a file to its end. Also works for files of /proc, which report a size of 0, for FIFOs
/// (until the last writer has closed), and for files that grow meanwhile.
///
///     std::string text = co_await fs::read_file("/etc/hostname");
///
/// Data in the page cache is copied inline; for other data the task is suspended. A large file is
/// read in pieces, between which other tasks run. Throws filesystem_error with the errno of open(2)
/// or read(2) (EISDIR for a directory), or EFBIG if it exceeds the maximum size of a string;
/// std::bad_alloc.
///
/// Threading: on a context. Cancellation: std::errc::operation_canceled.
task<std::string> read_file(path p);
/// The same; on failure sets `ec` and returns an empty string. `ec` must outlive the await.
task<std::string> read_file(path p, std::error_code& ec);

} // namespace coil::fs
