#include "write_data.hpp"

#include "ring_or_pool.hpp"

#include <coil/io/file.hpp>
#include <coil/io/modifiers.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

#include <sys/stat.h>
#include <unistd.h>

namespace coil::fs::detail {

namespace {

constexpr std::size_t step = 1U << 20;   // bytes between two checks of the stop token
constexpr std::size_t slice = 16U << 20; // bytes per job on the pool
constexpr int is_stream = INT_MIN;       // not an errno

/// Whether `fd` is a regular file or a block device: a write may wait for a device, but never for a
/// reader. Also true if fstat(2) fails; the write then returns the error.
bool is_on_a_disk(int fd) noexcept {
    struct ::stat status{};
    return sys::fstat(fd, &status) < 0 || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode);
}

/// Writes a slice; returns the number of bytes, or -errno.
int write_slice(int fd, const_buffer data, ::off_t offset, inplace_stop_token stop) noexcept {
    const std::size_t size = std::min(data.size(), slice);
    std::size_t done = 0;
    while (done < size) {
        if (stop.stop_requested()) {
            return -ECANCELED;
        }
        const void* const from = static_cast<const std::byte*>(data.data()) + done;
        const std::size_t most = std::min(size - done, step);
        const ::ssize_t n =
            sys::pwrite(fd, from, most, offset < 0 ? -1 : offset + static_cast<::off_t>(done));
        if (n < 0 && n != -EINTR) {
            return static_cast<int>(n);
        }
        if (n == 0) {
            return -EIO; // devices do not return 0; retrying would not end
        }
        done += static_cast<std::size_t>(std::max<::ssize_t>(n, 0));
    }
    return static_cast<int>(done);
}

/// Writes to a file for which a write may wait for a reader. Through the ring the write can be
/// cancelled and occupies no thread, except for a character device: a write to a terminal may block
/// even in non-blocking mode, so a worker of the ring executes it.
task<io_result> write_by_ring(int fd, const_buffer data, ::off_t offset) {
    struct ::stat status{};
    const bool may_block = sys::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode);
    while (data.size() > 0) {
        const const_buffer part(data.data(), std::min(data.size(), step));
        const ::off_t at = offset < 0 ? io::current_position : offset;
        int n = 0;
        if (may_block) {
            n = co_await io::force_async(io::write(fd, part, at));
        } else {
            n = co_await io::write(fd, part, at);
        }
        if (n < 0) {
            co_return n;
        }
        if (n == 0) {
            co_return -EIO;
        }
        data = data.drop(static_cast<std::size_t>(n));
        offset = offset < 0 ? offset : offset + n;
    }
    co_return 0;
}

} // namespace

task<io_result> write_data(int fd, const_buffer data, ::off_t offset) {
    const inplace_stop_token stop = co_await this_task::stop_token();
    bool is_known = false;
    while (data.size() > 0) {
        const int n = co_await on_thread([=] {
            return is_known || is_on_a_disk(fd) ? write_slice(fd, data, offset, stop) : is_stream;
        });
        if (n == is_stream) {
            co_return co_await write_by_ring(fd, data, offset);
        }
        is_known = true;
        if (n < 0) {
            co_return n;
        }
        data = data.drop(static_cast<std::size_t>(n));
        offset = offset < 0 ? offset : offset + n;
    }
    co_return 0;
}

} // namespace coil::fs::detail
