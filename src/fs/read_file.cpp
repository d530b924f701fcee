#include "ring_or_pool.hpp"

#include <coil/fs/file.hpp>
#include <coil/fs/read_file.hpp>
#include <coil/io/file.hpp>
#include <coil/io/metadata.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace coil::fs {

namespace {

/// Most files are smaller.
constexpr std::size_t first_bytes = 32U << 10;
/// About a tenth of a millisecond of copying, during which the context runs nothing else.
constexpr std::size_t largest_read = 1U << 20;

/// Whether read(2) never waits although the file system may lack RWF_NOWAIT: a regular file in
/// memory.
bool is_in_memory(int fd) noexcept {
    struct ::stat status{};
    struct ::statfs found{};
    return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::fstatfs(fd, &found) == 0 &&
           (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

/// read(2) that does not wait for a device, or -errno.
::ssize_t read_cached(int fd, mutable_buffer buf) noexcept {
    if (detail::sys::is_in_world()) {
        return detail::sys::pread(fd, buf.data(), buf.size(), -1);
    }
    const ::iovec part{buf.data(), buf.size()};
    ::ssize_t n = ::preadv2(fd, &part, 1, -1, RWF_NOWAIT);
    if (n < 0 && errno == EOPNOTSUPP && is_in_memory(fd)) {
        n = ::read(fd, buf.data(), buf.size());
    }
    return n < 0 ? -errno : n;
}

/// Reads what is available without waiting. Returns true if that was the whole file, as for a small
/// file in the page cache. Two system calls are cheaper than two round trips through the ring, and
/// reading into a hot buffer with an additional copy is cheaper than clearing a string to read
/// into.
bool read_at_once(int fd, std::string& text) {
    std::byte buffer[first_bytes]; // NOLINT(*-member-init): only what was read is copied
    std::size_t done = 0;
    ::ssize_t n = 0;
    while (done < sizeof buffer) {
        n = read_cached(fd, mutable_buffer(buffer).drop(done));
        if (n <= 0) {
            break;
        }
        done += static_cast<std::size_t>(n);
    }
    text.assign(reinterpret_cast<const char*>(buffer), done);
    // An empty result may also be a FIFO before its first writer.
    return n == 0 && done > 0;
}

/// For large new memory, most of the cost is page faults.
void ask_for_huge_pages(std::string& text) noexcept {
    constexpr std::uintptr_t huge = 2U << 20;
    const auto begin = (reinterpret_cast<std::uintptr_t>(text.data()) + huge - 1) / huge * huge;
    const auto end =
        (reinterpret_cast<std::uintptr_t>(text.data()) + text.capacity()) / huge * huge;
    if (end > begin + huge) {
        ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE); // NOLINT: an address
    }
}

/// Reserves space for the rest of the file, according to its size.
task<io_result> make_room(int fd, std::string& text) {
    struct ::statx found{};
    const int r = co_await io::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &found);
    if (r < 0) {
        co_return r;
    }
    if (found.stx_size >= text.max_size() - 1) {
        co_return -EFBIG;
    }
    if (found.stx_size > text.size()) {
        text.reserve(static_cast<std::size_t>(found.stx_size) + 1); // and one byte to detect the
                                                                    // end
        ask_for_huge_pages(text);
    }
    co_return 0;
}

task<io_result> read_rest(int fd, std::string& text) {
    if (text.size() == first_bytes) {
        if (const int r = co_await make_room(fd, text); r < 0) {
            co_return r;
        }
    }
    for (;;) {
        const std::size_t done = text.size();
        const std::size_t room = text.capacity() - done;
        text.resize(done + (room == 0 || done == 0 ? first_bytes : std::min(room, largest_read)));
        const int n = co_await io::read(fd, mutable_buffer(text).drop(done));
        text.resize(done + static_cast<std::size_t>(std::max(n, 0)));
        if (n <= 0) {
            co_return n;
        }
    }
}

task<io_result> read_whole(const path& p, std::string& text) {
    const int fd = co_await io::open(p, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        co_return fd;
    }
    file opened(fd);
    if (!read_at_once(fd, text)) {
        if (const int r = co_await read_rest(fd, text); r < 0) {
            co_return r;
        }
        if (text.capacity() / 2 > text.size()) {
            text.shrink_to_fit();
        }
    }
    if (coil::detail::required_loop().submits_for_others()) {
        static_cast<void>(co_await opened.close()); // errors do not matter: it was only read
    }
    co_return 0;
}

} // namespace

task<std::string> read_file(path p, std::error_code& ec) {
    std::string text;
    const int r = co_await read_whole(p, text);
    ec = detail::error_of(r);
    if (r < 0) {
        text = std::string();
    }
    co_return text;
}

task<std::string> read_file(path p) {
    std::string text;
    const int r = co_await read_whole(p, text);
    detail::throw_if(detail::error_of(r), "coil::fs::read_file", p);
    co_return text;
}

} // namespace coil::fs
