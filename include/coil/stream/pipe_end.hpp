#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/descriptor_owners.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/io/detail/owned_close.hpp>
#include <coil/io/file.hpp>
#include <coil/stream/detail/vector_element.hpp>

#include <span>
#include <utility>

namespace coil {

/// A byte_stream that owns a descriptor: an end of a pipe or FIFO, a terminal, standard input.
/// Move-only; the destructor closes the descriptor.
///
///     auto [in, out] = make_pipe();
///     co_await write_all(out, "hello");
///     int n = co_await in.read_some(buf);
///
/// Threading: on one context at a time. Cancellation: as for io_awaitable. Writing to a pipe
/// without a reader returns -EPIPE (see io_context for when SIGPIPE is raised as well).
class pipe_end {
public:
    /// Owns nothing; calls return -EBADF.
    pipe_end() noexcept = default;
    /// Takes ownership of a descriptor; a negative number means none.
    explicit pipe_end(int fd) noexcept : fd_(fd < 0 ? nothing : detail::owned_by(fd, "pipe_end")) {}
    pipe_end(pipe_end&& other) noexcept : fd_(coil::detail::exchange(other.fd_, nothing)) {}
    pipe_end& operator=(pipe_end&& other) noexcept;
    ~pipe_end();

    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
    [[nodiscard]] int native_handle() const noexcept { return fd_; }
    /// Releases ownership.
    [[nodiscard]] int release() noexcept {
        return detail::given_up(coil::detail::exchange(fd_, nothing));
    }

    /// read(2): bytes read; 0 when every writer has closed its end.
    operation read_some(mutable_buffer buf COIL_LIFETIMEBOUND) noexcept {
        return io::read(fd_, buf);
    }
    /// write(2): bytes written.
    operation write_some(const_buffer buf COIL_LIFETIMEBOUND) noexcept {
        return io::write(fd_, buf);
    }
    /// vectored_source and vectored_sink: readv(2) and writev(2) with up to 16 buffers. The
    /// operation copies the list; the buffers themselves must outlive it.
    auto readv_some(std::span<const mutable_buffer> to) noexcept {
        return io_awaitable<detail::file_vector_element>(detail::file_vector_element(fd_, to));
    }
    auto writev_some(std::span<const const_buffer> from) noexcept {
        return io_awaitable<detail::file_vector_element>(detail::file_vector_element(fd_, from));
    }

    /// Produce readable compiler errors.
    operation write(...) COIL_DELETE("write_some(data), or the whole: write_all(pipe, data)");
    operation read(...) COIL_DELETE("read_some(buf), or the whole: process::output()");

    /// close(2). Afterwards it owns nothing.
    auto close() noexcept {
        using element = detail::owned_close_element<nothing>;
        return io_awaitable<element>(element(fd_));
    }
    /// The same as close(): closing is the only way to end the stream for a pipe's reader.
    auto shutdown_write() noexcept { return close(); }

private:
    static constexpr int nothing = -1;

    int fd_ = nothing;
};

/// Creates a pipe, close-on-exec: {reading end, writing end}. Throws std::system_error.
[[nodiscard]] std::pair<pipe_end, pipe_end> make_pipe();

} // namespace coil
