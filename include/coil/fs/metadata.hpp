#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <system_error>

// What is known of a file besides its content, and what of it can be set. The two forms of each
// function, their errors and cancellation: see <coil/fs/status.hpp>.

namespace coil::fs {

/// The size of a regular file in bytes. A directory is an error (std::errc::is_a_directory), as is
/// what is neither. Error: uintmax_t(-1).
task<std::uintmax_t> file_size(path p);
task<std::uintmax_t> file_size(path p, std::error_code& ec);

/// How many names what `p` leads to has. Error: uintmax_t(-1).
task<std::uintmax_t> hard_link_count(path p);
task<std::uintmax_t> hard_link_count(path p, std::error_code& ec);

/// When the content was changed last, to the nanosecond where the file system keeps them. A time
/// that file_time_type cannot hold is std::errc::value_too_large. Error: file_time_type::min().
task<file_time_type> last_write_time(path p);
task<file_time_type> last_write_time(path p, std::error_code& ec);

/// Sets that time, as exactly as the file system keeps it, by utimensat(2) on the blocking pool.
task<> last_write_time(path p, file_time_type new_time);
task<> last_write_time(path p, file_time_type new_time, std::error_code& ec);

/// Sets, adds or removes permissions, by fchmodat(2) on the blocking pool. perm_options::nofollow
/// on a symlink is std::errc::operation_not_supported on Linux. Adding and removing read the
/// permissions before: changes that others make in between are lost.
task<> permissions(path p, perms prms, perm_options opts = perm_options::replace);
task<> permissions(path p, perms prms, std::error_code& ec);
task<> permissions(path p, perms prms, perm_options opts, std::error_code& ec);

/// Cuts a file, or extends it with zeros, to `size` bytes: truncate(2), on the blocking pool. (The
/// ring has ftruncate(2), but opening a file first has other errors and effects.)
task<> resize_file(path p, std::uintmax_t size);
task<> resize_file(path p, std::uintmax_t size, std::error_code& ec);

/// How much room the file system has that `p` lies on, in bytes: statvfs(3), on the blocking pool.
/// Error: every member is uintmax_t(-1).
task<space_info> space(path p);
task<space_info> space(path p, std::error_code& ec);

/// Whether both paths lead to the same file. One that leads to nothing is an error. One job on the
/// blocking pool.
task<bool> equivalent(path p1, path p2);
task<bool> equivalent(path p1, path p2, std::error_code& ec);

} // namespace coil::fs
