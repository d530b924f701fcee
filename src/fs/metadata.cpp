#include "file_time.hpp"
#include "standard.hpp"
#include "standard_calls.hpp"
#include "stat.hpp"

#include <coil/fs/metadata.hpp>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

namespace coil::fs {

namespace {

namespace stdfs = detail::stdfs;

constexpr auto unknown = static_cast<std::uintmax_t>(-1);

} // namespace

task<std::uintmax_t> file_size(path p, std::error_code& ec) {
    struct ::statx st{};
    const int result = co_await detail::stat(AT_FDCWD, p, 0, STATX_TYPE | STATX_SIZE, st);
    ec = detail::error_of(result);
    if (result < 0) {
        co_return unknown;
    }
    if (!S_ISREG(st.stx_mode)) {
        ec = std::make_error_code(S_ISDIR(st.stx_mode) ? std::errc::is_a_directory
                                                       : std::errc::not_supported);
        co_return unknown;
    }
    co_return st.stx_size;
}
task<std::uintmax_t> file_size(path p) {
    std::error_code ec;
    const std::uintmax_t size = co_await fs::file_size(p, ec);
    detail::throw_if(ec, "coil::fs::file_size", p);
    co_return size;
}

task<std::uintmax_t> hard_link_count(path p, std::error_code& ec) {
    struct ::statx st{};
    const int result = co_await detail::stat(AT_FDCWD, p, 0, STATX_NLINK, st);
    ec = detail::error_of(result);
    co_return result < 0 ? unknown : st.stx_nlink;
}
task<std::uintmax_t> hard_link_count(path p) {
    std::error_code ec;
    const std::uintmax_t count = co_await fs::hard_link_count(p, ec);
    detail::throw_if(ec, "coil::fs::hard_link_count", p);
    co_return count;
}

task<file_time_type> last_write_time(path p, std::error_code& ec) {
    struct ::statx st{};
    const int result = co_await detail::stat(AT_FDCWD, p, 0, STATX_MTIME, st);
    ec = detail::error_of(result);
    file_time_type time = file_time_type::min();
    if (result >= 0 && !detail::to_file_time(st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec, time)) {
        ec = std::make_error_code(std::errc::value_too_large);
    }
    co_return time;
}
task<file_time_type> last_write_time(path p) {
    std::error_code ec;
    const file_time_type time = co_await fs::last_write_time(p, ec);
    detail::throw_if(ec, "coil::fs::last_write_time", p);
    co_return time;
}

task<> last_write_time(path p, file_time_type new_time) {
    co_await detail::standard([&p, new_time] { stdfs::last_write_time(p, new_time); },
                              "coil::fs::last_write_time", p);
}
task<> last_write_time(path p, file_time_type new_time, std::error_code& ec) {
    co_await detail::standard([&p, new_time, &ec] { stdfs::last_write_time(p, new_time, ec); }, ec);
}

task<> permissions(path p, perms prms, perm_options opts) {
    co_await detail::standard([&p, prms, opts] { stdfs::permissions(p, prms, opts); },
                              "coil::fs::permissions", p);
}
task<> permissions(path p, perms prms, perm_options opts, std::error_code& ec) {
    co_await detail::standard([&p, prms, opts, &ec] { stdfs::permissions(p, prms, opts, ec); }, ec);
}
task<> permissions(path p, perms prms, std::error_code& ec) {
    return fs::permissions(std::move(p), prms, perm_options::replace, ec);
}

task<> resize_file(path p, std::uintmax_t size) {
    co_await detail::standard([&p, size] { stdfs::resize_file(p, size); }, "coil::fs::resize_file",
                              p);
}
task<> resize_file(path p, std::uintmax_t size, std::error_code& ec) {
    co_await detail::standard([&p, size, &ec] { stdfs::resize_file(p, size, ec); }, ec);
}

task<space_info> space(path p) {
    co_return co_await detail::standard([&p] { return stdfs::space(p); }, "coil::fs::space", p);
}
task<space_info> space(path p, std::error_code& ec) {
    co_return co_await detail::standard([&p, &ec] { return stdfs::space(p, ec); }, ec,
                                        space_info{unknown, unknown, unknown});
}

task<bool> equivalent(path p1, path p2) {
    co_return co_await detail::standard([&p1, &p2] { return stdfs::equivalent(p1, p2); },
                                        "coil::fs::equivalent", p1, p2);
}
task<bool> equivalent(path p1, path p2, std::error_code& ec) {
    co_return co_await detail::standard([&p1, &p2, &ec] { return stdfs::equivalent(p1, p2, ec); },
                                        ec, false);
}

} // namespace coil::fs
