#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/buffered_writer.hpp>
#include <coil/stream/byte_stream.hpp>

#include <type_traits>

namespace coil {

/// A byte_source that flushes a buffered_writer before each read from the underlying stream. A
/// server that answers pipelined requests then sends all answers to the requests that have arrived
/// with one call, and never waits for a request while an answer is in its buffer.
///
///     buffered_writer out{socket};
///     buffered_reader in{flush_before_read{socket, out}};
///     auto lines = in.lines();
///     while (auto line = co_await lines.next())    // flushes `out` only if it has to read
///         co_await out.write(answer_to(*line));
///     (co_await out.flush()).value();              // after the last write
///
/// The end of the stream is found by a read, so all data written before it has been flushed then.
/// Data written after the last read needs a flush() of its own, for example if the loop ends with
/// an answer to "quit".
///
/// Constructed from an lvalue, it refers to the stream; from an rvalue (std::move(socket)), it owns
/// it. The writer must outlive it.
///
/// Threading: that of the stream and of the writer: reads and writes are calls of one coroutine.
/// Errors: if the flush fails, the read returns its -errno and reads nothing; the writer keeps the
/// data. Cancellation: of the flush or of the read; neither loses data.
template <class Source, class Sink>
class flush_before_read {
    static constexpr bool has_source =
        byte_source<Source>; // a variable: otherwise the compiler also lists the constraints
    static_assert(has_source, "a flush_before_read reads a byte_source, such as a net::socket, a "
                              "tls::stream or a pipe_end");

public:
    flush_before_read(Source&& from, buffered_writer<Sink>& out COIL_LIFETIMEBOUND) noexcept(
        std::is_nothrow_constructible_v<Source, Source&&>)
        : from_(static_cast<Source&&>(from)), out_(&out) {}

    /// The underlying stream. Its own reads do not flush.
    [[nodiscard]] std::remove_reference_t<Source>& stream() noexcept { return from_; }

    /// byte_source.
    task<io_result> read_some(mutable_buffer to COIL_LIFETIMEBOUND) {
        if (out_->pending() > 0) {
            const int flushed = co_await out_->flush();
            if (flushed < 0) {
                co_return io_result(flushed);
            }
        }
        co_return io_result(co_await from_.read_some(to));
    }

private:
    Source from_;
    buffered_writer<Sink>* out_;
};

template <class Source, class Sink>
flush_before_read(Source&&, buffered_writer<Sink>&) -> flush_before_read<Source, Sink>;

} // namespace coil
