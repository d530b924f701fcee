#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>
#include <coil/io/checked.hpp>
#include <coil/io/detail/owned_close.hpp>
#include <coil/io/file.hpp>
#include <coil/io/metadata.hpp>
#include <coil/stream/detail/vector_element.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/types.h>

namespace coil::fs {

/// An open file; the destructor closes it. Move-only.
///
///     fs::file f = co_await fs::file::open("notes", O_RDONLY);
///     char buf[4096];
///     int n = co_await f.read(buf);
///
/// Transfers return an io_result, as coil::io and net::socket do: a number ≥ 0, or -errno. sync(),
/// data_sync(), resize() and close() return a checked_io_result, 0 or -errno; the compiler warns if
/// it is ignored. Functions whose result cannot hold an error (open(), size()) throw
/// filesystem_error, or take an error_code.
///
/// Threading: one context at a time. Operations with an offset may be in flight together;
/// operations at the current position must not, because they share it. Cancellation: as for
/// io_awaitable, including the functions that return a task. The file and the buffers must outlive
/// the awaited operation.
class [[nodiscard("discarding the file closes it")]] file {
public:
    /// A file without a descriptor; operations return -EBADF.
    file() noexcept = default;
    /// Takes ownership of a descriptor.
    explicit file(int fd) noexcept
        : fd_(fd < 0 ? nothing : coil::detail::owned_by(fd, "fs::file")) {}
    /// Produces a readable compiler error.
    template <std::convertible_to<path> Name>
    explicit file(Name&&) COIL_DELETE("open it: co_await fs::file::open(path)");
    file(file&& other) noexcept : fd_(coil::detail::exchange(other.fd_, nothing)) {}
    file& operator=(file&& other) noexcept;
    /// A file is not copied.
    file(const file&) COIL_DELETE_COPY("a file has one owner: write std::move(f)");
    file& operator=(const file&) COIL_DELETE_COPY("a file has one owner: write std::move(f)");
    /// close(2), immediately. co_await close() first if closing may block (on a network file
    /// system, or for a huge file whose last name was removed), or if its error matters.
    ~file();

    /// open(2), with O_CLOEXEC added to `flags`: O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC, ...
    /// Opening a FIFO for writing waits for a reader. Opening it for reading may return before
    /// there is a writer; the first read then waits for one. Throws filesystem_error with the errno
    /// of open(2).
    static task<file> open(path p, int flags = O_RDONLY, ::mode_t mode = 0666);
    /// The same, but on failure sets `ec` and returns a file without a descriptor. `ec` must
    /// outlive the await.
    static task<file> open(path p, int flags, ::mode_t mode, std::error_code& ec);
    COIL_CORO_WRAPPER static task<file> open(path p, int flags, std::error_code& ec) {
        return open(std::move(p), flags, 0666, ec);
    }
    COIL_CORO_WRAPPER static task<file> open(path p, std::error_code& ec) {
        return open(std::move(p), O_RDONLY, 0666, ec);
    }

    /// Produces a readable compiler error.
    static task<file> open(...)
        COIL_DELETE("open takes a path and the flags of open(2): open(path, O_WRONLY | O_CREAT)");

    /// Whether it has a descriptor.
    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    [[nodiscard]] explicit operator bool() const noexcept { return is_open(); }
    /// The descriptor, or −1.
    [[nodiscard]] int native_handle() const noexcept { return fd_; }
    /// Releases ownership of the descriptor.
    [[nodiscard]] int release() noexcept {
        return coil::detail::given_up(coil::detail::exchange(fd_, nothing));
    }

    /// read(2): bytes read, 0 at the end of the file.
    operation read(mutable_buffer buf COIL_LIFETIMEBOUND) noexcept { return io::read(fd_, buf); }
    /// Produces a readable compiler error.
    template <coil::detail::plain_number Size>
    coil::detail::any_awaitable read(Size)
        COIL_DELETE("pass a buffer, which read fills: int n = co_await f.read(buf)");
    /// write(2): bytes written, perhaps fewer than requested if a device is full or a limit is
    /// reached. The position of a regular file then does not advance (measured on Linux 6.18):
    /// continue with write_at(), or use write_all(), which handles this.
    operation write(const_buffer buf COIL_LIFETIMEBOUND) noexcept { return io::write(fd_, buf); }
    /// The members of a byte_stream, for copy(), buffered_reader and others. read_some() is read(),
    /// and write_some() is write_all(). shutdown_write() does nothing and returns 0.
    operation read_some(mutable_buffer buf COIL_LIFETIMEBOUND) noexcept { return read(buf); }
    COIL_CORO_WRAPPER task<io_result> write_some(const_buffer buf COIL_LIFETIMEBOUND) {
        return write_all(buf);
    }
    task<io_result> shutdown_write() noexcept;
    /// vectored_source, vectored_sink: readv(2), writev(2) at the current position, with up to 16
    /// buffers. After a short write the position is after the bytes that were written. The memory
    /// of the list must outlive the await of writev_some().
    auto readv_some(std::span<const mutable_buffer> to) noexcept {
        return io_awaitable<coil::detail::file_vector_element>(
            coil::detail::file_vector_element(fd_, to));
    }
    task<io_result> writev_some(std::span<const const_buffer> from COIL_LIFETIMEBOUND);
    /// pread(2), pwrite(2): at an offset in bytes; the file's position does not change. (Pipes and
    /// sockets, which have no position, ignore the offset.)
    operation read_at(mutable_buffer buf COIL_LIFETIMEBOUND, ::off_t offset) noexcept {
        return io::read(fd_, buf, real_offset(offset));
    }
    operation write_at(const_buffer buf COIL_LIFETIMEBOUND, ::off_t offset) noexcept {
        return io::write(fd_, buf, real_offset(offset));
    }

    /// Reads at the current position until the buffer is full; returns the buffer's size (INT_MAX
    /// if it is larger). On failure it returns the error even if some bytes were read: -ENODATA if
    /// the file ends before the buffer is full.
    task<io_result> read_exact(mutable_buffer buf COIL_LIFETIMEBOUND);
    /// Writes the whole buffer at the current position; returns its size (INT_MAX if it is larger).
    /// On failure it returns the error even if some bytes were written.
    task<io_result> write_all(const_buffer buf COIL_LIFETIMEBOUND);
    /// The same at an offset; the file's position does not change.
    task<io_result> read_exact_at(mutable_buffer buf COIL_LIFETIMEBOUND, ::off_t offset);
    task<io_result> write_all_at(const_buffer buf COIL_LIFETIMEBOUND, ::off_t offset);

    /// fsync(2): 0 when data and metadata are on the device.
    checked_operation sync() noexcept { return coil::detail::checked(io::fsync(fd_)); }
    /// fdatasync(2): like sync(), but without metadata that reading the data does not need.
    checked_operation data_sync() noexcept { return coil::detail::checked(io::fdatasync(fd_)); }

    /// The size in bytes. The first form throws filesystem_error; the second returns uintmax_t(−1)
    /// on failure.
    task<std::uintmax_t> size() const;
    task<std::uintmax_t> size(std::error_code& ec) const;
    /// ftruncate(2): 0. Added bytes read as zeros.
    checked_operation resize(::off_t length) noexcept {
        return coil::detail::checked(io::ftruncate(fd_, length));
    }

    /// close(2). Afterwards the file has no descriptor, even if the call failed, unless the result
    /// is -ECANCELED.
    auto close() noexcept {
        using element = coil::detail::owned_close_element<nothing>;
        return coil::detail::checked(io_awaitable<element>(element(fd_)));
    }

private:
    static constexpr int nothing = -1;

    /// pread(2) refuses all negative offsets, but the ring takes −1 as the current position.
    static constexpr ::off_t real_offset(::off_t offset) noexcept {
        return offset == io::current_position ? -2 : offset;
    }

    int fd_ = nothing;
};

} // namespace coil::fs
