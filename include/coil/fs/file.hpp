#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>
#include <coil/io/checked.hpp>
#include <coil/io/file.hpp>
#include <coil/io/metadata.hpp>
#include <coil/io/owned_close.hpp>

#include <cstdint>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/types.h>

namespace coil::fs {

/// An open file, owned: the destructor closes it. Move-only.
///
///     fs::file f = co_await fs::file::open("notes", O_RDONLY);
///     char buf[4096];
///     int n = co_await f.read(buf);
///
/// What moves bytes gives an io_result, as coil::io and net::socket do: a number ≥ 0, or −errno. So
/// do sync(), data_sync(), resize() and close(), whose result is 0 or −errno: a checked_io_result,
/// which the compiler does not let go unseen. What has no place for an error in its result (open(),
/// size()) throws filesystem_error, or takes an error_code.
///
/// Threading: on one context at a time. Calls at offsets may be in flight together; those at the
/// current position one at a time, as they share it.
/// Cancellation: as io_awaitable; of the functions that give a task, too. The file and the buffers
/// must outlive what is awaited on them.
class [[nodiscard("the file would be closed at once")]] file {
public:
    /// Owns nothing; calls on it give −EBADF.
    file() noexcept = default;
    /// Takes over a descriptor.
    explicit file(int fd) noexcept : fd_(fd < 0 ? nothing : fd) {}
    file(file&& other) noexcept : fd_(std::exchange(other.fd_, nothing)) {}
    file& operator=(file&& other) noexcept;
    /// close(2), at once. Where that may wait (a network file system, the last name of a huge file
    /// is gone), or its error matters, co_await close() before.
    ~file();

    /// open(2), with O_CLOEXEC. `flags` and `mode` are its own: O_RDONLY, O_WRONLY | O_CREAT |
    /// O_TRUNC, ... A FIFO is waited for as open(2) does, except for reading, where the first read
    /// waits. Throws filesystem_error with open's errno.
    static task<file> open(path p, int flags = O_RDONLY, ::mode_t mode = 0666);
    /// The same; on failure, which `ec` tells, a file that owns nothing. `ec` must outlive the
    /// await.
    static task<file> open(path p, int flags, ::mode_t mode, std::error_code& ec);
    static task<file> open(path p, int flags, std::error_code& ec) {
        return open(std::move(p), flags, 0666, ec);
    }
    static task<file> open(path p, std::error_code& ec) {
        return open(std::move(p), O_RDONLY, 0666, ec);
    }

    /// Whether there is a descriptor.
    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    [[nodiscard]] explicit operator bool() const noexcept { return is_open(); }
    /// The descriptor; −1: none.
    [[nodiscard]] int native_handle() const noexcept { return fd_; }
    /// Gives up ownership.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, nothing); }

    /// read(2): bytes read, 0 at the end of the file.
    operation read(mutable_buffer buf) noexcept { return io::read(fd_, buf); }
    /// write(2): bytes written, perhaps fewer than asked, where a device is full or a limit
    /// reached. The position of a regular file then stays where it was (measured on Linux 6.18): go
    /// on by write_at(), or use write_all(), which knows that.
    operation write(const_buffer buf) noexcept { return io::write(fd_, buf); }
    /// What a byte_stream does (copy(), buffered_reader, ...): read() and write_all() at the
    /// current position. A file has no writing side to shut down: 0.
    operation read_some(mutable_buffer buf) noexcept { return read(buf); }
    task<io_result> write_some(const_buffer buf) { return write_all(buf); }
    task<io_result> shutdown_write() noexcept;
    /// pread(2), pwrite(2): at an offset in bytes; the file's position stays. (What has no
    /// positions, pipes and sockets, ignores the offset.)
    operation read_at(mutable_buffer buf, ::off_t offset) noexcept {
        return io::read(fd_, buf, real_offset(offset));
    }
    operation write_at(const_buffer buf, ::off_t offset) noexcept {
        return io::write(fd_, buf, real_offset(offset));
    }

    /// Reads until the buffer is full, at the current position: the buffer's size. −ENODATA when
    /// the file ends before, or the error, however much came until then. A buffer beyond INT_MAX
    /// bytes is filled, too, and gives INT_MAX.
    task<io_result> read_exact(mutable_buffer buf);
    /// Writes all of the buffer at the current position: its size, or the error, however much was
    /// written until then. A buffer beyond INT_MAX bytes is written, too, and gives INT_MAX.
    task<io_result> write_all(const_buffer buf);
    /// The same at an offset; the file's position stays.
    task<io_result> read_exact_at(mutable_buffer buf, ::off_t offset);
    task<io_result> write_all_at(const_buffer buf, ::off_t offset);

    /// fsync(2): 0 when data and metadata are on the device.
    checked_operation sync() noexcept { return coil::detail::checked(io::fsync(fd_)); }
    /// fdatasync(2): without metadata that reading the data does not need.
    checked_operation data_sync() noexcept { return coil::detail::checked(io::fdatasync(fd_)); }

    /// How long it is, in bytes. Throws filesystem_error; the second gives uintmax_t(−1).
    task<std::uintmax_t> size() const;
    task<std::uintmax_t> size(std::error_code& ec) const;
    /// ftruncate(2): 0. What is added reads as zeros.
    checked_operation resize(::off_t length) noexcept {
        return coil::detail::checked(io::ftruncate(fd_, length));
    }

    /// close(2). Afterwards the file owns nothing, also after an error other than −ECANCELED.
    auto close() noexcept {
        using element = coil::detail::owned_close_element<nothing>;
        return coil::detail::checked(io_awaitable<element>(element(fd_)));
    }

private:
    static constexpr int nothing = -1;

    /// −1 is the current position to the ring, and an error to pread(2), as all negative ones are.
    static constexpr ::off_t real_offset(::off_t offset) noexcept {
        return offset == io::current_position ? -2 : offset;
    }

    int fd_ = nothing;
};

} // namespace coil::fs
