#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/io/detail/owned_close.hpp>
#include <coil/io/file.hpp>

#include <utility>

namespace coil {

/// A descriptor that is read or written as a stream of bytes, owned: an end of a pipe or FIFO, a
/// terminal, standard input. A byte_stream. Move-only; the destructor closes it.
///
/// Threading: on one context at a time. Cancellation: as io_awaitable. A pipe that nobody reads
/// gives -EPIPE; where SIGPIPE is not ignored, the kernel raises it as well.
class pipe_end {
public:
    /// Owns nothing; calls give -EBADF.
    pipe_end() noexcept = default;
    /// Takes over a descriptor; a negative number is none.
    explicit pipe_end(int fd) noexcept : fd_(fd < 0 ? nothing : fd) {}
    pipe_end(pipe_end&& other) noexcept : fd_(std::exchange(other.fd_, nothing)) {}
    pipe_end& operator=(pipe_end&& other) noexcept;
    ~pipe_end();

    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
    [[nodiscard]] int native_handle() const noexcept { return fd_; }
    /// Gives up ownership.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, nothing); }

    /// read(2): bytes, 0 when the last writer is gone.
    operation read_some(mutable_buffer buf) noexcept { return io::read(fd_, buf); }
    /// write(2): bytes written.
    operation write_some(const_buffer buf) noexcept { return io::write(fd_, buf); }

    /// close(2): afterwards it owns nothing.
    auto close() noexcept {
        using element = detail::owned_close_element<nothing>;
        return io_awaitable<element>(element(fd_));
    }
    /// The reader sees the end: the same as close(), as a pipe has no other way to say so.
    auto shutdown_write() noexcept { return close(); }

private:
    static constexpr int nothing = -1;

    int fd_ = nothing;
};

/// The two ends of a new pipe, close-on-exec: what is written to the second is read from the first.
/// Throws std::system_error.
[[nodiscard]] std::pair<pipe_end, pipe_end> make_pipe();

} // namespace coil
