#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <type_traits>

namespace coil {

/// A source of bytes: `co_await s.read_some(buf)` returns the number of bytes read, at least one if
/// the buffer is not empty; 0 at the end; or -errno.
template <class S>
concept byte_source = requires(std::remove_reference_t<S>& s, mutable_buffer to) {
    { s.read_some(to) } -> awaitable;
    requires std::convertible_to<await_result_t<decltype(s.read_some(to))>, io_result>;
};

/// A sink for bytes: `co_await s.write_some(buf)` returns the number of bytes written, perhaps
/// fewer than requested, or -errno; `co_await s.shutdown_write()` ends the stream: 0 or -errno.
template <class S>
concept byte_sink = requires(std::remove_reference_t<S>& s, const_buffer from) {
    { s.write_some(from) } -> awaitable;
    requires std::convertible_to<await_result_t<decltype(s.write_some(from))>, io_result>;
    { s.shutdown_write() } -> awaitable;
    requires std::convertible_to<await_result_t<decltype(s.shutdown_write())>, io_result>;
};

/// A source and a sink, such as a connection: net::socket, pipe_end. One read and one write may be
/// in flight together, but not two reads or two writes.
template <class S>
concept byte_stream = byte_source<S> && byte_sink<S>;

/// Whether read_some() and write_some() of a stream only transfer bytes of its descriptor, which
/// `int native_handle()` returns. Functions such as duplex() and sendfile() then use the descriptor
/// directly. True for net::socket.
template <class S>
inline constexpr bool is_plain_socket = false;

namespace detail {

/// The stream of a buffered_reader or buffered_writer that was constructed without one.
struct no_stream {
    task<io_result> read_some(mutable_buffer);
    task<io_result> write_some(const_buffer);
    task<io_result> shutdown_write();
};

} // namespace detail

} // namespace coil
