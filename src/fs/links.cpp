#include "ring_or_pool.hpp"
#include "standard.hpp"
#include "standard_calls.hpp"

#include <coil/fs/links.hpp>
#include <coil/io/directory.hpp>

#include <filesystem>
#include <utility>

#include <unistd.h>

namespace coil::fs {

namespace {

namespace stdfs = detail::stdfs;

task<io_result> symlink(const path& to, const path& new_symlink) {
    return detail::ring_or_thread(uring::opcode::symlinkat, io::symlink(to, new_symlink), [&] {
        return detail::sys::symlinkat(to.c_str(), AT_FDCWD, new_symlink.c_str());
    });
}

task<io_result> link(const path& to, const path& new_hard_link) {
    return detail::ring_or_thread(uring::opcode::linkat, io::link(to, new_hard_link), [&] {
        return detail::sys::linkat(AT_FDCWD, to.c_str(), AT_FDCWD, new_hard_link.c_str(), 0);
    });
}

task<> make_symlink(path to, path new_symlink, const char* what) {
    const int result = co_await symlink(to, new_symlink);
    detail::throw_if(detail::error_of(result), what, to, new_symlink);
}

} // namespace

task<> create_symlink(path to, path new_symlink) {
    return make_symlink(std::move(to), std::move(new_symlink), "coil::fs::create_symlink");
}
task<> create_symlink(path to, path new_symlink, std::error_code& ec) {
    const int result = co_await symlink(to, new_symlink);
    ec = detail::error_of(result);
}

task<> create_directory_symlink(path to, path new_symlink) {
    return make_symlink(std::move(to), std::move(new_symlink),
                        "coil::fs::create_directory_symlink");
}
task<> create_directory_symlink(path to, path new_symlink, std::error_code& ec) {
    return fs::create_symlink(std::move(to), std::move(new_symlink), ec);
}

task<> create_hard_link(path to, path new_hard_link) {
    const int result = co_await link(to, new_hard_link);
    detail::throw_if(detail::error_of(result), "coil::fs::create_hard_link", to, new_hard_link);
}
task<> create_hard_link(path to, path new_hard_link, std::error_code& ec) {
    const int result = co_await link(to, new_hard_link);
    ec = detail::error_of(result);
}

task<path> read_symlink(path p) {
    co_return co_await detail::standard([&p] { return stdfs::read_symlink(p); },
                                        "coil::fs::read_symlink", p);
}
task<path> read_symlink(path p, std::error_code& ec) {
    co_return co_await detail::standard([&p, &ec] { return stdfs::read_symlink(p, ec); }, ec,
                                        path());
}

task<> copy_symlink(path existing_symlink, path new_symlink) {
    co_await detail::standard([&] { stdfs::copy_symlink(existing_symlink, new_symlink); },
                              "coil::fs::copy_symlink", existing_symlink, new_symlink);
}
task<> copy_symlink(path existing_symlink, path new_symlink, std::error_code& ec) {
    co_await detail::standard([&] { stdfs::copy_symlink(existing_symlink, new_symlink, ec); }, ec);
}

} // namespace coil::fs
