#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstdint>
#include <system_error>

// Reading and changing metadata of files. <coil/fs/status.hpp> describes the two forms of each
// function, errors and cancellation.

namespace coil::fs {

/// The size of a regular file in bytes. std::errc::is_a_directory for a directory; other types are
/// errors, too. On error: uintmax_t(-1).
task<std::uintmax_t> file_size(path p);
task<std::uintmax_t> file_size(path p, std::error_code& ec);

/// The number of hard links. On error: uintmax_t(-1).
task<std::uintmax_t> hard_link_count(path p);
task<std::uintmax_t> hard_link_count(path p, std::error_code& ec);

/// The time of the last change of the content, with the resolution of the file system (up to
/// nanoseconds). std::errc::value_too_large if file_time_type cannot represent it. On error:
/// file_time_type::min().
task<file_time_type> last_write_time(path p);
task<file_time_type> last_write_time(path p, std::error_code& ec);

/// Sets that time by utimensat(2) on the blocking pool. The file system's resolution applies.
task<> last_write_time(path p, file_time_type new_time);
task<> last_write_time(path p, file_time_type new_time, std::error_code& ec);

/// Replaces, adds or removes permissions, with fchmodat(2) on the blocking pool.
/// perm_options::nofollow on a symlink is std::errc::operation_not_supported on Linux, even if the
/// link appears during the call; before Linux 6.6 or glibc 2.39, nofollow needs /proc. Adding and
/// removing read the permissions first: a change that another process makes meanwhile is lost.
task<> permissions(path p, perms prms, perm_options opts = perm_options::replace);
task<> permissions(path p, perms prms, std::error_code& ec);
task<> permissions(path p, perms prms, perm_options opts, std::error_code& ec);
/// Produces a readable compiler error.
task<> permissions(const path&, int)
    COIL_DELETE("permissions are values of perms: permissions(p, perms(0644))");

/// Truncates a file, or extends it with zeros, to `size` bytes: truncate(2), on the blocking pool.
/// (The ring has only ftruncate(2), for which the file would have to be opened; that can fail with
/// other errors and has side effects.)
task<> resize_file(path p, std::uintmax_t size);
task<> resize_file(path p, std::uintmax_t size, std::error_code& ec);

/// The capacity and free space, in bytes, of the file system that contains `p`: statvfs(3), on the
/// blocking pool. On error: every member is uintmax_t(-1).
task<space_info> space(path p);
task<space_info> space(path p, std::error_code& ec);

/// Whether both paths refer to the same file; an error if one does not exist. One job on the
/// blocking pool.
task<bool> equivalent(path p1, path p2);
task<bool> equivalent(path p1, path p2, std::error_code& ec);

} // namespace coil::fs
