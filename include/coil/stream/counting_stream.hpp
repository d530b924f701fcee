#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>

#include <cstdint>
#include <type_traits>

namespace coil {

/// A byte_stream that counts the bytes that pass through it.
///
///     counting_stream connection{std::move(socket)};
///     co_await serve(connection);
///     log(connection.bytes_read(), connection.bytes_written());
///
/// Constructed from an lvalue, it refers to the stream; from an rvalue (std::move(socket)), it owns
/// it. Over a tls::stream it counts what the program reads and writes; as the transport of a
/// tls::basic_stream it counts what is on the wire.
///
/// Threading: on one context at a time, including the counters; one read and one write may be in
/// flight together. Cancellation and errors: the stream's own.
template <class Stream>
class counting_stream {
    static constexpr bool has_stream = byte_source<Stream> || byte_sink<Stream>;
    static_assert(has_stream,
                  "a counting_stream counts the bytes of a byte_stream, such as a net::socket, "
                  "a tls::stream or a pipe_end");

public:
    explicit counting_stream(Stream&& of) noexcept(
        std::is_nothrow_constructible_v<Stream, Stream&&>)
        : stream_(static_cast<Stream&&>(of)) {}

    /// The underlying stream, whose own calls are not counted.
    [[nodiscard]] std::remove_reference_t<Stream>& stream() noexcept { return stream_; }

    /// The bytes of all reads and writes that have completed.
    [[nodiscard]] std::uint64_t bytes_read() const noexcept { return read_; }
    [[nodiscard]] std::uint64_t bytes_written() const noexcept { return written_; }

    /// byte_source.
    task<io_result> read_some(mutable_buffer to COIL_LIFETIMEBOUND)
        requires byte_source<Stream>
    {
        const int n = io_result(co_await stream_.read_some(to));
        read_ += n > 0 ? static_cast<std::uint64_t>(n) : 0;
        co_return io_result(n);
    }
    /// byte_sink.
    task<io_result> write_some(const_buffer from COIL_LIFETIMEBOUND)
        requires byte_sink<Stream>
    {
        const int n = io_result(co_await stream_.write_some(from));
        written_ += n > 0 ? static_cast<std::uint64_t>(n) : 0;
        co_return io_result(n);
    }
    auto shutdown_write()
        requires byte_sink<Stream>
    {
        return stream_.shutdown_write();
    }

private:
    Stream stream_;
    std::uint64_t read_ = 0;
    std::uint64_t written_ = 0;
};

template <class Stream>
counting_stream(Stream&&) -> counting_stream<Stream>;

} // namespace coil
