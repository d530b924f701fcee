#include "copy_data.hpp"

#include "syscalls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coil::fs::detail {

namespace {

/// Bytes between two checks of the stop token: a millisecond or two from the page cache.
constexpr std::uint64_t step = 4U << 20;
/// For smaller files, reading and writing costs less than the setup of a copy inside the kernel
/// (measured on ext4 and tmpfs). The buffer is on the stack.
constexpr std::size_t buffer_size = 64U << 10;

} // namespace

data_copy::data_copy(int from, int to, const struct ::stat& from_status) noexcept
    : from_(from), to_(to), size_(from_status.st_size),
      // A file of size 0 may still have data (/proc).
      method_(from_status.st_size > 0 ? method::clone : method::buffer),
      sparse_(from_status.st_blocks < from_status.st_size / 512) {}

int data_copy::go_on(std::uint64_t bytes, inplace_stop_token stop) noexcept {
    if (method_ == method::clone) {
        if (clone()) {
            return 0;
        }
        method_ = size_ > static_cast<::off_t>(buffer_size) ? method::range : method::buffer;
        if (size_ > static_cast<::off_t>(step)) {
            sys::expect_sequential(from_);
        }
    }
    while (bytes > 0) {
        if (stop.stop_requested()) {
            return -ECANCELED;
        }
        if (sparse_ && done_ >= data_end_) {
            if (const int r = find_data(); r <= 0) {
                return r;
            }
        }
        std::uint64_t most = std::min(bytes, step);
        if (sparse_) {
            most = std::min(most, static_cast<std::uint64_t>(data_end_ - done_));
        }
        const ::ssize_t n = copy_some(most);
        if (n < 0) {
            return static_cast<int>(n);
        }
        done_ += n;
        written_ = done_;
        bytes -= std::min(bytes, static_cast<std::uint64_t>(n));
        if (n == 0 || ended_) {
            size_ = done_;
            return 0;
        }
    }
    return 1;
}

/// Makes the target share all blocks of the source, including holes (a reflink).
bool data_copy::clone() noexcept {
    if (sys::is_in_world() || ::ioctl(to_, FICLONE, from_) != 0) {
        return false;
    }
    done_ = size_;
    return true;
}

/// Skips a hole. 1: at the next data; 0: no data is left, and the target has the length of the
/// source; -errno.
int data_copy::find_data() noexcept {
    const ::off_t data = sys::lseek(from_, done_, SEEK_DATA);
    if (data >= 0) {
        const ::off_t hole = sys::lseek(from_, data, SEEK_HOLE);
        // A file system in user space may return any position: never go back.
        if (data >= done_ && hole > data) {
            done_ = data;
            data_end_ = hole;
            if (method_ == method::send) {
                method_ = method::range; // which sets the target's position before it falls back to
                                         // `send`
            }
            return 1;
        }
    } else if (data == -ENXIO) {
        const ::off_t end = sys::lseek(from_, 0, SEEK_END);
        if (end > written_) {
            if (const int r = sys::ftruncate(to_, end); r < 0) {
                return r;
            }
            written_ = end;
        }
        size_ = done_ = std::max(done_, end);
        return 0;
    }
    sparse_ = false; // holes cannot be detected: treat everything as data
    return 1;
}

/// Bytes copied; 0 at the end of the file; -errno. If one method is not supported (another device,
/// not a regular file, a kernel without the call), the next one is used; the error of the last one
/// is returned.
::ssize_t data_copy::copy_some(std::uint64_t most) noexcept {
    if (method_ == method::range) {
        const ::ssize_t n = copy_range(most);
        if (n > 0) {
            return n;
        }
        method_ =
            n == 0 || sys::lseek(to_, done_, SEEK_SET) != done_ ? method::buffer : method::send;
    }
    if (method_ == method::send) {
        const ::ssize_t n = send(most);
        if (n > 0) {
            return n;
        }
        method_ = method::buffer; // after 0, too: some file systems report the end too early
    }
    return copy_buffer(most);
}

::ssize_t data_copy::copy_range(std::size_t most) noexcept {
    if (sys::is_in_world()) {
        return -EOPNOTSUPP;
    }
    ::ssize_t n = -1;
    do {
        ::off_t in = done_;
        ::off_t out = done_;
        n = ::copy_file_range(from_, &in, to_, &out, most, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

::ssize_t data_copy::send(std::size_t most) noexcept {
    if (sys::is_in_world()) {
        return -EOPNOTSUPP;
    }
    ::ssize_t n = -1;
    do {
        ::off_t in = done_;
        n = ::sendfile(to_, from_, &in, most);
    } while (n < 0 && errno == EINTR);
    return n;
}

::ssize_t data_copy::copy_buffer(std::size_t most) noexcept {
    std::byte buffer[buffer_size]; // NOLINT(*-member-init): only what was read is written
    const std::size_t asked = std::min(most, buffer_size);
    ::ssize_t n = -1;
    do {
        n = sys::pread(from_, buffer, asked, done_);
    } while (n == -EINTR);
    if (n < 0) {
        return n;
    }
    for (::ssize_t put = 0; put < n;) {
        const ::ssize_t w =
            sys::pwrite(to_, buffer + put, static_cast<std::size_t>(n - put), done_ + put);
        if (w < 0 && w != -EINTR) {
            return w;
        }
        put += std::max<::ssize_t>(w, 0);
    }
    // A short read exactly at the file's size is the end. (Files of /proc may be read in pieces.)
    ended_ = n < static_cast<::ssize_t>(asked) && done_ + n == size_;
    return n;
}

} // namespace coil::fs::detail
