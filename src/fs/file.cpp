#include "ring_or_pool.hpp"
#include "write_data.hpp"

#include <coil/fs/file.hpp>
#include <coil/io/file.hpp>
#include <coil/io/metadata.hpp>
#include <coil/io/modifiers.hpp>

#include <algorithm>
#include <climits>
#include <cstddef>

#include <sys/stat.h>
#include <unistd.h>

namespace coil::fs {

namespace {

/// The maximum size of one operation. The kernel copies cached data on the context's own thread,
/// and other tasks run between two operations.
constexpr std::size_t piece = 1U << 20;

template <class Buffer>
Buffer next_piece(Buffer buf, std::size_t done) noexcept {
    buf = buf.drop(done);
    return {buf.data(), std::min(buf.size(), piece)};
}

io_result total(std::size_t size) noexcept {
    return io_result(static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
}

/// The offset of the next operation after `done` bytes; io::current_position stays as it is.
::off_t offset_after(::off_t offset, std::size_t done) noexcept {
    return offset == io::current_position ? offset : offset + static_cast<::off_t>(done);
}

task<io_result> read_all_of(int fd, mutable_buffer buf, ::off_t offset) {
    std::size_t done = 0;
    while (done < buf.size()) {
        const int n = co_await io::read(fd, next_piece(buf, done), offset_after(offset, done));
        if (n < 0) {
            co_return n;
        }
        if (n == 0) {
            co_return -ENODATA;
        }
        done += static_cast<std::size_t>(n);
    }
    co_return total(done);
}

task<io_result> write_all_of(int fd, const_buffer buf, ::off_t offset) {
    // A short write through the ring does not advance the position, so it is set afterwards. -1:
    // the file has none (a pipe, a socket).
    const ::off_t begin = offset == io::current_position ? detail::sys::lseek(fd, 0, SEEK_CUR) : -1;
    struct ::stat status{};
    if (begin < 0 && detail::sys::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode)) {
        const int r = co_await detail::write_data(fd, buf, offset);
        co_return r < 0 ? io_result(r) : total(buf.size());
    }
    std::size_t done = 0;
    while (done < buf.size()) {
        const const_buffer part = next_piece(buf, done);
        const int n = co_await io::write(fd, part, offset_after(offset, done));
        if (n < 0) {
            co_return n;
        }
        done += static_cast<std::size_t>(n);
        if (static_cast<std::size_t>(n) < part.size()) { // the device is probably full
            if (offset < io::current_position) {
                co_return -EINVAL;
            }
            if (begin >= 0) {
                detail::sys::lseek(fd, begin + static_cast<::off_t>(done), SEEK_SET);
            }
            const int r =
                co_await detail::write_data(fd, buf.drop(done), offset_after(offset, done));
            co_return r < 0 ? io_result(r) : total(buf.size());
        }
    }
    co_return total(done);
}

} // namespace

file& file::operator=(file&& other) noexcept {
    if (this != &other) {
        const file closing(std::move(*this));
        fd_ = std::exchange(other.fd_, nothing);
    }
    return *this;
}

file::~file() {
    if (fd_ >= 0) {
        coil::detail::close_owned_descriptor(fd_, "fs::file");
    }
}

task<file> file::open(path p, int flags, ::mode_t mode, std::error_code& ec) {
    flags |= O_CLOEXEC;
    int fd = co_await io::open(p, flags, mode);
    if (fd == -ENXIO && (flags & O_NONBLOCK) == 0) {
        // A FIFO without a reader, for which the non-blocking attempt failed (see io::openat).
        fd = co_await io::force_async(io::open(p, flags, mode));
    }
    ec = detail::error_of(fd);
    co_return file(fd);
}

task<file> file::open(path p, int flags, ::mode_t mode) {
    std::error_code ec;
    file opened = co_await open(p, flags, mode, ec);
    detail::throw_if(ec, "coil::fs::file::open", p);
    co_return opened;
}

task<io_result> file::read_exact(mutable_buffer buf) {
    return read_all_of(fd_, buf, io::current_position);
}
task<io_result> file::write_all(const_buffer buf) {
    return write_all_of(fd_, buf, io::current_position);
}
task<io_result> file::read_exact_at(mutable_buffer buf, ::off_t offset) {
    return read_all_of(fd_, buf, real_offset(offset));
}
task<io_result> file::write_all_at(const_buffer buf, ::off_t offset) {
    return write_all_of(fd_, buf, real_offset(offset));
}

task<std::uintmax_t> file::size(std::error_code& ec) const {
    struct ::statx found{};
    const int r = co_await io::statx(fd_, "", AT_EMPTY_PATH, STATX_SIZE, &found);
    ec = detail::error_of(r);
    if (r < 0) {
        co_return static_cast<std::uintmax_t>(-1);
    }
    co_return found.stx_size;
}

task<std::uintmax_t> file::size() const {
    std::error_code ec;
    const std::uintmax_t bytes = co_await size(ec);
    detail::throw_if(ec, "coil::fs::file::size");
    co_return bytes;
}

task<io_result> file::writev_some(std::span<const const_buffer> from) {
    using element = coil::detail::file_vector_element;
    // A short write through the ring does not advance the position, so it is set afterwards. -1:
    // the file has none (a pipe, a socket).
    const ::off_t begin = detail::sys::lseek(fd_, 0, SEEK_CUR);
    const int n = co_await io_awaitable<element>(element(fd_, from));
    if (n > 0 && begin >= 0 &&
        static_cast<std::size_t>(n) < coil::detail::part_list(from).bytes()) {
        detail::sys::lseek(fd_, begin + n, SEEK_SET);
    }
    co_return io_result(n);
}

task<io_result> file::shutdown_write() noexcept { co_return io_result(0); }

} // namespace coil::fs
