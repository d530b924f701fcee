#pragma once

#include "conformance/support.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <linux/openat2.h>
#include <stdio.h> // RENAME_NOREPLACE
#include <sys/stat.h>
#include <sys/xattr.h>

// The calls of errno_names_table.hpp, each with a path `p`; `top` is the directory with the files
// of the table. They return 0 or -errno.

namespace conformance {

namespace fs = coil::fs;

struct named_call {
    std::string_view name;
    task<int> (*make)(std::string p, std::string top);
};

/// A call of coil::io.
#define COIL_CALL(name, ...)                                                                       \
    {name, [](std::string p, std::string top) -> task<int> {                                       \
         static_cast<void>(top);                                                                   \
         co_return co_await __VA_ARGS__;                                                           \
     }}
/// A function of coil::fs, whose last argument is `ec`.
#define COIL_FUNCTION(name, ...)                                                                   \
    {name, [](std::string p, std::string top) -> task<int> {                                       \
         static_cast<void>(top);                                                                   \
         std::error_code ec;                                                                       \
         co_await __VA_ARGS__;                                                                     \
         co_return -ec.value();                                                                    \
     }}

inline task<int> opened(std::string p, int flags) {
    const int fd = co_await io::open(p, flags | O_CLOEXEC, 0600);
    if (fd < 0) {
        co_return fd;
    }
    co_return co_await io::close(fd);
}
inline task<int> stat_of(std::string p, int flags) {
    struct ::statx st{};
    co_return co_await io::statx(AT_FDCWD, p, flags, STATX_BASIC_STATS, &st);
}
/// Opens a file and makes a call on it.
template <class Call>
task<int> on_opened(std::string p, int flags, Call call) {
    const int fd = co_await io::open(p, flags | O_CLOEXEC);
    if (fd < 0) {
        co_return fd;
    }
    const int result = co_await call(fd);
    co_await io::close(fd);
    co_return result;
}
/// openat2(2) from the directory `top`.
inline task<int> opened_from(std::string p, std::string top, std::uint64_t resolve) {
    const int directory = co_await io::open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ::open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC;
    how.resolve = resolve;
    const std::string name = p.starts_with(top) ? p.substr(top.size()) : p;
    int fd = co_await io::openat2(directory, name, &how, sizeof how);
    if (fd >= 0) {
        fd = co_await io::close(fd);
    }
    co_await io::close(directory);
    co_return fd;
}
inline task<int> attribute_of(std::string p, std::string name) {
    char value[16];
    const int size = co_await io::getxattr(p, name.c_str(), value);
    co_return std::min(size, 0);
}
inline task<int> renamed(std::string from, std::string to, unsigned flags) {
    co_return co_await io::renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}
inline task<> read_whole(coil::async_generator<fs::directory_entry> entries) {
    while (const auto entry = co_await entries.next()) {
        static_cast<void>(entry);
    }
}
inline task<> opened_file(fs::path p, std::error_code& ec) {
    const fs::file file = co_await fs::file::open(p, O_RDWR, ec);
    static_cast<void>(file);
}
inline fs::write_options writing(fs::write_mode mode) {
    fs::write_options options;
    options.mode = mode;
    return options;
}
inline fs::copy_tree_options replacing() {
    fs::copy_tree_options options;
    options.options |= fs::copy_options::overwrite_existing;
    return options;
}

/// The calls of coil::io.
inline const std::vector<named_call>& io_calls() {
    static const std::vector<named_call> all{
        COIL_CALL("open", opened(p, O_RDONLY)),
        COIL_CALL("open_write", opened(p, O_WRONLY)),
        COIL_CALL("open_truncate", opened(p, O_WRONLY | O_TRUNC)),
        COIL_CALL("open_create", opened(p, O_RDWR | O_CREAT)),
        COIL_CALL("open_new", opened(p, O_RDWR | O_CREAT | O_EXCL)),
        COIL_CALL("open_directory", opened(p, O_RDONLY | O_DIRECTORY)),
        COIL_CALL("open_nofollow", opened(p, O_RDONLY | O_NOFOLLOW)),
        COIL_CALL("open_path", opened(p, O_PATH | O_NOFOLLOW)),
        COIL_CALL("statx", stat_of(p, 0)),
        COIL_CALL("lstatx", stat_of(p, AT_SYMLINK_NOFOLLOW)),
        COIL_CALL("mkdir", io::mkdir(p, 0700)),
        COIL_CALL("rmdir", io::rmdir(p)),
        COIL_CALL("unlink", io::unlink(p)),
        COIL_CALL("symlink_to", io::symlink("f", p)),
        COIL_CALL("link_from", io::link(p, top + "new")),
        COIL_CALL("link_to", io::link(top + "f", p)),
        COIL_CALL("rename_from", io::rename(p, top + "new")),
        COIL_CALL("rename_file_to", io::rename(top + "g", p)),
        COIL_CALL("rename_dir_to", io::rename(top + "e2", p)),
        COIL_CALL("rename_unless", renamed(top + "g", p, RENAME_NOREPLACE)),
        COIL_CALL("exchange", renamed(top + "g", p, RENAME_EXCHANGE)),
        COIL_CALL("link_follow", io::linkat(AT_FDCWD, p, AT_FDCWD, top + "new", AT_SYMLINK_FOLLOW)),
        COIL_CALL("open_beneath", opened_from(p, top, RESOLVE_BENEATH)),
        COIL_CALL("open_no_links", opened_from(p, top, RESOLVE_NO_SYMLINKS)),
        COIL_CALL("getxattr", attribute_of(p, "user.none")),
        COIL_CALL("getxattr_odd", attribute_of(p, "odd.none")),
        COIL_CALL("setxattr", io::setxattr(p, "user.x", "value", 0)),
        COIL_CALL("setxattr_replace", io::setxattr(p, "user.y", "value", XATTR_REPLACE)),
        COIL_CALL("ftruncate", on_opened(p, O_RDWR, [](int fd) { return io::ftruncate(fd, 100); })),
        COIL_CALL("ftruncate_read_only",
                  on_opened(p, O_RDONLY, [](int fd) { return io::ftruncate(fd, 100); })),
        COIL_CALL("ftruncate_negative",
                  on_opened(p, O_RDWR, [](int fd) { return io::ftruncate(fd, -1); })),
        COIL_CALL("fallocate",
                  on_opened(p, O_RDWR, [](int fd) { return io::fallocate(fd, 0, 0, 100); })),
        COIL_CALL("fallocate_read_only",
                  on_opened(p, O_RDONLY, [](int fd) { return io::fallocate(fd, 0, 0, 100); })),
        COIL_CALL("fallocate_nothing",
                  on_opened(p, O_RDWR, [](int fd) { return io::fallocate(fd, 0, 0, 0); })),
    };
    return all;
}

/// The functions of coil::fs.
inline const std::vector<named_call>& fs_calls() {
    using fs::copy_options;
    using fs::write_mode;
    static const std::vector<named_call> all{
        COIL_FUNCTION("status", fs::status(p, ec)),
        COIL_FUNCTION("symlink_status", fs::symlink_status(p, ec)),
        COIL_FUNCTION("exists", fs::exists(p, ec)),
        COIL_FUNCTION("is_directory", fs::is_directory(p, ec)),
        COIL_FUNCTION("file_size", fs::file_size(p, ec)),
        COIL_FUNCTION("is_empty", fs::is_empty(p, ec)),
        COIL_FUNCTION("hard_link_count", fs::hard_link_count(p, ec)),
        COIL_FUNCTION("last_write_time", fs::last_write_time(p, ec)),
        COIL_FUNCTION("set_write_time", fs::last_write_time(p, fs::file_time_type(), ec)),
        COIL_FUNCTION("permissions", fs::permissions(p, fs::perms::owner_all, ec)),
        COIL_FUNCTION("resize_file", fs::resize_file(p, 3, ec)),
        COIL_FUNCTION("space", fs::space(p, ec)),
        COIL_FUNCTION("equivalent", fs::equivalent(p, top + "f", ec)),
        COIL_FUNCTION("canonical", fs::canonical(p, ec)),
        COIL_FUNCTION("weakly_canonical", fs::weakly_canonical(p, ec)),
        COIL_FUNCTION("read_symlink", fs::read_symlink(p, ec)),
        COIL_FUNCTION("create_directory", fs::create_directory(p, ec)),
        COIL_FUNCTION("create_directory_like", fs::create_directory(p, top + "d", ec)),
        COIL_FUNCTION("absolute", fs::absolute(p, ec)),
        COIL_FUNCTION("relative", fs::relative(p, top, ec)),
        COIL_FUNCTION("proximate", fs::proximate(p, top, ec)),
        COIL_FUNCTION("create_directories", fs::create_directories(p, ec)),
        COIL_FUNCTION("create_symlink", fs::create_symlink("f", p, ec)),
        COIL_FUNCTION("hard_link_from", fs::create_hard_link(p, top + "new", ec)),
        COIL_FUNCTION("hard_link_to", fs::create_hard_link(top + "f", p, ec)),
        COIL_FUNCTION("copy_symlink_from", fs::copy_symlink(p, top + "new", ec)),
        COIL_FUNCTION("copy_symlink_to", fs::copy_symlink(top + "lf", p, ec)),
        COIL_FUNCTION("rename_from_fs", fs::rename(p, top + "new", ec)),
        COIL_FUNCTION("rename_to_fs", fs::rename(top + "g", p, ec)),
        COIL_FUNCTION("remove", fs::remove(p, ec)),
        COIL_FUNCTION("remove_all", fs::remove_all(p, ec)),
        COIL_FUNCTION("read_file", fs::read_file(p, ec)),
        COIL_FUNCTION("write_file", fs::write_file(p, "x", ec)),
        COIL_FUNCTION("write_new", fs::write_file(p, "x", writing(write_mode::create_new), ec)),
        COIL_FUNCTION("append", fs::write_file(p, "x", writing(write_mode::append), ec)),
        COIL_FUNCTION("atomic_replace", fs::write_file(p, "x", fs::atomic_replace, ec)),
        COIL_FUNCTION("file_open", opened_file(p, ec)),
        COIL_FUNCTION("copy_file_from", fs::copy_file(p, top + "new", ec)),
        COIL_FUNCTION("copy_file_to", fs::copy_file(top + "g", p, ec)),
        COIL_FUNCTION("copy_file_over",
                      fs::copy_file(top + "g", p, copy_options::overwrite_existing, ec)),
        COIL_FUNCTION("copy_from", fs::copy(p, top + "new", copy_options::recursive, ec)),
        COIL_FUNCTION("copy_to", fs::copy(top + "e2", p, copy_options::recursive, ec)),
        COIL_FUNCTION("copy_tree_from", fs::copy_tree(p, top + "new", ec)),
        COIL_FUNCTION("copy_tree_to", fs::copy_tree(top + "e2", p, ec)),
        COIL_FUNCTION("copy_tree_over", fs::copy_tree(top + "g", p, replacing(), ec)),
        COIL_FUNCTION("read_directory", read_whole(fs::read_directory(p, ec))),
        COIL_FUNCTION("walk", read_whole(fs::walk(p, ec))),
    };
    return all;
}

#undef COIL_CALL
#undef COIL_FUNCTION

} // namespace conformance
