#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <filesystem>
#include <system_error>

// What a path names: [fs.op.status] and the questions that it answers.
//
// Of each function there are two forms, as in <filesystem>: one throws filesystem_error, the other
// sets the error_code, which must outlive the await. Both give what <filesystem> gives. They run on
// the context that awaits them, by IORING_OP_STATX (Linux 5.6), and on the blocking pool where the
// kernel lacks it. When the task is asked to stop, the error is std::errc::operation_canceled.
//
// Call them by a qualified name, fs::exists(p): for an unqualified one, a std::filesystem::path
// brings the functions of <filesystem> with it; the call is ambiguous, or theirs, which blocks.

namespace coil::fs {

/// The type and permissions of what `p` names; of a symlink, of what it leads to. That nothing is
/// there is not an error for the throwing form: the type is file_type::not_found. In the other form
/// `ec` says why, and a type of file_type::none says that it is not known whether something is
/// there.
task<file_status> status(path p);
task<file_status> status(path p, std::error_code& ec);

/// The same of a symlink itself.
task<file_status> symlink_status(path p);
task<file_status> symlink_status(path p, std::error_code& ec);

/// Whether `p` names something. That it does not is no error.
task<bool> exists(path p);
task<bool> exists(path p, std::error_code& ec);

/// Whether `p` names a file of that kind. In the form with an error_code, a path that names nothing
/// is an error (std::errc::no_such_file_or_directory), as in <filesystem>.
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
/// Does not follow `p`.
task<bool> is_symlink(path p);
task<bool> is_symlink(path p, std::error_code& ec);

/// Whether `p` is an empty regular file or a directory without entries. Anything else is an error.
/// One job on the blocking pool: io_uring has no getdents(2).
task<bool> is_empty(path p);
task<bool> is_empty(path p, std::error_code& ec);

// The same questions to a status that is known: nothing to wait for.

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
