#include "standard.hpp"
#include "standard_calls.hpp"
#include "stat.hpp"

#include <coil/fs/status.hpp>

#include <cerrno>
#include <utility>

namespace coil::fs {

namespace {

task<file_status> status_of(path p, int flags, std::error_code& ec) {
    struct ::statx st{};
    const int result = co_await detail::stat(AT_FDCWD, p, flags, STATX_TYPE | STATX_MODE, st);
    ec = detail::error_of(result);
    if (result >= 0) {
        co_return file_status(detail::type_of_mode(st.stx_mode),
                              static_cast<perms>(st.stx_mode) & perms::mask);
    }
    if (detail::is_not_found(result)) {
        co_return file_status(file_type::not_found);
    }
    // The file exists, but a size or number does not fit into the result.
    co_return file_status(result == -EOVERFLOW && flags == 0 ? file_type::unknown
                                                             : file_type::none);
}

task<file_status> known_status_of(path p, int flags, const char* what) {
    std::error_code ec;
    const file_status s = co_await status_of(p, flags, ec);
    if (!fs::status_known(s)) {
        throw filesystem_error(what, p, ec);
    }
    co_return s;
}

using question = bool (*)(file_status) noexcept;

task<bool> ask(path p, question q) {
    const file_status s = co_await fs::status(std::move(p));
    co_return q(s);
}
task<bool> ask(path p, std::error_code& ec, question q) {
    const file_status s = co_await fs::status(std::move(p), ec);
    co_return q(s);
}

} // namespace

task<file_status> status(path p) { return known_status_of(std::move(p), 0, "coil::fs::status"); }
task<file_status> status(path p, std::error_code& ec) { return status_of(std::move(p), 0, ec); }

task<file_status> symlink_status(path p) {
    return known_status_of(std::move(p), AT_SYMLINK_NOFOLLOW, "coil::fs::symlink_status");
}
task<file_status> symlink_status(path p, std::error_code& ec) {
    return status_of(std::move(p), AT_SYMLINK_NOFOLLOW, ec);
}

task<bool> exists(path p) { return ask(std::move(p), fs::exists); }
task<bool> exists(path p, std::error_code& ec) {
    const file_status s = co_await fs::status(std::move(p), ec);
    if (fs::status_known(s)) {
        ec.clear();
    }
    co_return fs::exists(s);
}

task<bool> is_regular_file(path p) { return ask(std::move(p), fs::is_regular_file); }
task<bool> is_regular_file(path p, std::error_code& ec) {
    return ask(std::move(p), ec, fs::is_regular_file);
}
task<bool> is_directory(path p) { return ask(std::move(p), fs::is_directory); }
task<bool> is_directory(path p, std::error_code& ec) {
    return ask(std::move(p), ec, fs::is_directory);
}
task<bool> is_block_file(path p) { return ask(std::move(p), fs::is_block_file); }
task<bool> is_block_file(path p, std::error_code& ec) {
    return ask(std::move(p), ec, fs::is_block_file);
}
task<bool> is_character_file(path p) { return ask(std::move(p), fs::is_character_file); }
task<bool> is_character_file(path p, std::error_code& ec) {
    return ask(std::move(p), ec, fs::is_character_file);
}
task<bool> is_fifo(path p) { return ask(std::move(p), fs::is_fifo); }
task<bool> is_fifo(path p, std::error_code& ec) { return ask(std::move(p), ec, fs::is_fifo); }
task<bool> is_socket(path p) { return ask(std::move(p), fs::is_socket); }
task<bool> is_socket(path p, std::error_code& ec) { return ask(std::move(p), ec, fs::is_socket); }
task<bool> is_other(path p) { return ask(std::move(p), fs::is_other); }
task<bool> is_other(path p, std::error_code& ec) { return ask(std::move(p), ec, fs::is_other); }

task<bool> is_symlink(path p) {
    const file_status s = co_await fs::symlink_status(std::move(p));
    co_return fs::is_symlink(s);
}
task<bool> is_symlink(path p, std::error_code& ec) {
    const file_status s = co_await fs::symlink_status(std::move(p), ec);
    co_return fs::is_symlink(s);
}

task<bool> is_empty(path p) {
    co_return co_await detail::standard([&p] { return detail::stdfs::is_empty(p); },
                                        "coil::fs::is_empty", p);
}
task<bool> is_empty(path p, std::error_code& ec) {
    co_return co_await detail::standard([&p, &ec] { return detail::stdfs::is_empty(p, ec); }, ec,
                                        false);
}

} // namespace coil::fs
