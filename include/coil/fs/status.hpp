#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <filesystem>
#include <system_error>

// The status of a file, [fs.op.status], and the predicates based on it.
//
// Each function has two forms, as in <filesystem>: one throws filesystem_error, the other sets the
// error_code, which must outlive the await. Both return the same results as <filesystem>. They run
// on the awaiting context, using IORING_OP_STATX (Linux 5.6), and on the blocking pool if the
// kernel lacks it. If the task is asked to stop, the error is std::errc::operation_canceled.
//
// Call them by a qualified name, fs::exists(p): in an unqualified call a std::filesystem::path
// argument also finds the functions of <filesystem>, so that the call is ambiguous or selects the
// blocking function.

namespace coil::fs {

/// The type and permissions of the file that `p` refers to, following symlinks. A missing file is
/// not an error in the throwing form: the type is file_type::not_found. In the other form `ec`
/// holds the reason; file_type::none means that it is unknown whether the file exists.
task<file_status> status(path p);
task<file_status> status(path p, std::error_code& ec);

/// The same without following a symlink.
task<file_status> symlink_status(path p);
task<file_status> symlink_status(path p, std::error_code& ec);

/// Whether `p` refers to an existing file. A missing file is not an error.
task<bool> exists(path p);
task<bool> exists(path p, std::error_code& ec);

/// Whether `p` refers to a file of that type. In the form with an error_code, a missing file is an
/// error (std::errc::no_such_file_or_directory), as in <filesystem>.
task<bool> is_regular_file(path p);
task<bool> is_regular_file(path p, std::error_code& ec);
task<bool> is_directory(path p);
task<bool> is_directory(path p, std::error_code& ec);
task<bool> is_block_file(path p);
task<bool> is_block_file(path p, std::error_code& ec);
task<bool> is_character_file(path p);
task<bool> is_character_file(path p, std::error_code& ec);
task<bool> is_fifo(path p);
task<bool> is_fifo(path p, std::error_code& ec);
task<bool> is_socket(path p);
task<bool> is_socket(path p, std::error_code& ec);
/// Neither a regular file nor a directory nor a symlink.
task<bool> is_other(path p);
task<bool> is_other(path p, std::error_code& ec);
/// Whether `p` itself is a symlink; does not follow it.
task<bool> is_symlink(path p);
task<bool> is_symlink(path p, std::error_code& ec);

/// Whether `p` is an empty regular file or a directory without entries. Other types are errors. One
/// job on the blocking pool: io_uring has no getdents(2).
task<bool> is_empty(path p);
task<bool> is_empty(path p, std::error_code& ec);

// The same predicates for a known status, without an await.

[[nodiscard]] inline bool status_known(file_status s) noexcept {
    return std::filesystem::status_known(s);
}
[[nodiscard]] inline bool exists(file_status s) noexcept { return std::filesystem::exists(s); }
[[nodiscard]] inline bool is_regular_file(file_status s) noexcept {
    return std::filesystem::is_regular_file(s);
}
[[nodiscard]] inline bool is_directory(file_status s) noexcept {
    return std::filesystem::is_directory(s);
}
[[nodiscard]] inline bool is_block_file(file_status s) noexcept {
    return std::filesystem::is_block_file(s);
}
[[nodiscard]] inline bool is_character_file(file_status s) noexcept {
    return std::filesystem::is_character_file(s);
}
[[nodiscard]] inline bool is_fifo(file_status s) noexcept { return std::filesystem::is_fifo(s); }
[[nodiscard]] inline bool is_socket(file_status s) noexcept {
    return std::filesystem::is_socket(s);
}
[[nodiscard]] inline bool is_other(file_status s) noexcept { return std::filesystem::is_other(s); }
[[nodiscard]] inline bool is_symlink(file_status s) noexcept {
    return std::filesystem::is_symlink(s);
}

} // namespace coil::fs
