#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/vector_element.hpp>

#include <array>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace coil {

/// A byte_source that reads into several buffers with one call, like readv(2):
/// `co_await s.readv_some(buffers)` fills them in order and returns the number of bytes; 0 at the
/// end; or -errno. Examples: net::socket, pipe_end, fs::file.
template <class S>
concept vectored_source =
    byte_source<S> && requires(std::remove_reference_t<S>& s, std::span<const mutable_buffer> to) {
        { s.readv_some(to) } -> awaitable;
        requires std::convertible_to<await_result_t<decltype(s.readv_some(to))>, io_result>;
    };

/// A byte_sink that writes several buffers with one call, like writev(2):
/// `co_await s.writev_some(buffers)` returns the number of bytes written, perhaps fewer than
/// requested, or -errno. Examples: net::socket, pipe_end, fs::file.
template <class S>
concept vectored_sink =
    byte_sink<S> && requires(std::remove_reference_t<S>& s, std::span<const const_buffer> from) {
        { s.writev_some(from) } -> awaitable;
        requires std::convertible_to<await_result_t<decltype(s.writev_some(from))>, io_result>;
    };

namespace detail {

template <class Buffer>
Buffer first_not_empty(std::span<const Buffer> buffers) noexcept {
    for (const Buffer& b : buffers) {
        if (b.size() > 0) {
            return b;
        }
    }
    return {};
}

/// The buffers of a list that remain to be written, a few at a time.
class remaining_parts {
public:
    explicit remaining_parts(std::span<const const_buffer> all) noexcept : rest_(all) {}

    /// The next buffers that are not empty; an empty span at the end.
    [[nodiscard]] std::span<const const_buffer> next() noexcept;
    void advance(std::size_t bytes) noexcept;
    [[nodiscard]] std::size_t done() const noexcept { return done_; }

private:
    std::span<const const_buffer> rest_;
    std::size_t offset_ = 0; // in the first buffer of rest_
    std::size_t done_ = 0;
    std::array<const_buffer, most_parts> window_{};
};

} // namespace detail

/// Reads from any byte_source into several buffers: the number of bytes, at least one if a buffer
/// is not empty; 0 at the end; or -errno. Uses the source's readv_some() if it has one; otherwise
/// reads into the first buffer that is not empty.
///
///     char header[8], body[4096];
///     const mutable_buffer parts[] = {header, body};
///     int n = co_await readv_some(socket, parts);
///
/// One call transfers at most 16 buffers that are not empty. The list of buffers and their memory
/// must outlive the await. Threading and cancellation: as for the source's read_some().
template <byte_source Source>
[[nodiscard("did you forget to co_await?")]] auto
readv_some(Source& from, std::span<const mutable_buffer> to COIL_LIFETIMEBOUND) {
    if constexpr (vectored_source<Source>) {
        return from.readv_some(to);
    } else {
        return from.read_some(detail::first_not_empty(to));
    }
}

/// Writes several buffers to any byte_sink: the number of bytes, perhaps fewer than requested, or
/// -errno. Uses the sink's writev_some() if it has one; otherwise writes the first buffer that is
/// not empty. For the rest see readv_some().
template <byte_sink Sink>
[[nodiscard("did you forget to co_await?")]] auto
writev_some(Sink& to, std::span<const const_buffer> from COIL_LIFETIMEBOUND) {
    if constexpr (vectored_sink<Sink>) {
        return to.writev_some(from);
    } else {
        return to.write_some(detail::first_not_empty(from));
    }
}

/// Writes all buffers to a sink, in order, and returns the sum of their sizes. A header and a body
/// are thus sent together, without being copied into one buffer.
///
///     const const_buffer parts[] = {header, body};
///     (co_await writev_all(socket, parts)).value();
///
/// On an error it returns -errno even if some bytes were written; -EIO if the sink accepts nothing.
/// At most 0x7ffff000 bytes, as with writev(2). The list of buffers and their memory must outlive
/// the await. Threading and cancellation: as for the sink's write_some(); in particular, -ECANCELED
/// does not say how much was written.
template <byte_sink Sink>
task<io_result> writev_all(Sink& to, std::span<const const_buffer> from COIL_LIFETIMEBOUND) {
    detail::remaining_parts rest(from);
    for (;;) {
        const std::span<const const_buffer> parts = rest.next();
        if (parts.empty()) {
            co_return io_result(static_cast<int>(rest.done()));
        }
        const int n = io_result(co_await writev_some(to, parts));
        if (n <= 0) {
            co_return io_result(n == 0 ? -EIO : n);
        }
        rest.advance(static_cast<std::size_t>(n));
    }
}

} // namespace coil
