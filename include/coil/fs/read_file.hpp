#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <string>
#include <system_error>

namespace coil::fs {

/// All that is in a file, until its end: also of files of /proc, which say that they are empty, of
/// FIFOs, until the last writer has closed, and of files that grow meanwhile.
///
///     std::string text = co_await fs::read_file("/etc/hostname");
///
/// What the page cache has is copied in place, the rest waits suspended; a large file is read in
/// pieces, between which others run. Throws filesystem_error with the errno of open(2) or read(2)
/// (EISDIR for a directory), EFBIG where no string can be so long; std::bad_alloc.
///
/// Threading: on a context. Cancellation: std::errc::operation_canceled.
task<std::string> read_file(path p);
/// The same; on failure, which `ec` tells, an empty string. `ec` must outlive the await.
task<std::string> read_file(path p, std::error_code& ec);

} // namespace coil::fs
