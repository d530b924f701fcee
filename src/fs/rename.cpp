#include "ring_or_pool.hpp"

#include <coil/fs/rename.hpp>
#include <coil/io/directory.hpp>

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

namespace coil::fs {

namespace {

task<io_result> rename_path(const path& from, const path& to) {
    return detail::ring_or_thread(uring::opcode::renameat, io::rename(from, to), [&] {
        return detail::sys::renameat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str());
    });
}

task<io_result> unlink_path(const path& p, int flags) {
    return detail::ring_or_thread(
        uring::opcode::unlinkat, io::unlinkat(AT_FDCWD, p, flags),
        [&p, flags] { return detail::sys::unlinkat(AT_FDCWD, p.c_str(), flags); });
}

} // namespace

task<> rename(path from, path to) {
    const int result = co_await rename_path(from, to);
    detail::throw_if(detail::error_of(result), "coil::fs::rename", from, to);
}
task<> rename(path from, path to, std::error_code& ec) {
    const int result = co_await rename_path(from, to);
    ec = detail::error_of(result);
}

task<bool> remove(path p, std::error_code& ec) {
    int result = co_await unlink_path(p, 0);
    if (result == -EISDIR) {
        result = co_await unlink_path(p, AT_REMOVEDIR);
    }
    ec = detail::error_of(result == -ENOENT ? 0 : result);
    co_return result >= 0;
}
task<bool> remove(path p) {
    std::error_code ec;
    const bool removed = co_await fs::remove(p, ec);
    detail::throw_if(ec, "coil::fs::remove", p);
    co_return removed;
}

} // namespace coil::fs
