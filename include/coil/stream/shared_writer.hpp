#pragma once

#include <coil/context/this_context.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/write_queue.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace coil {

/// Lets several coroutines write messages to one stream at the same time, for example the handlers
/// of a multiplexed connection. Messages that are written in the same turn of the context, or while
/// a write is in flight, go out with one call.
///
///     shared_writer out{socket};
///     co_await out.write(answer);      // in any number of coroutines
///
/// Each message is written whole, in the order in which the calls begin. (A task begins when it is
/// awaited; as an argument of timeout() or when_any(), later in the turn.) A call completes when
/// the stream has taken its message. A message is *accepted* when it has been copied into the
/// buffer; until there is room for it, the call waits. A message larger than the buffer is written
/// from the caller's memory after the messages before it.
///
/// Constructed from an lvalue, it refers to the stream; from an rvalue (std::move(socket)), it owns
/// it. The constructor allocates the buffer. A shared_writer must outlive its calls, and discards
/// messages that were accepted and not written. It is itself a byte_sink, for example for
/// write_all().
///
/// Threading: on one context at a time. Cancellation and errors: one call at a time writes for all.
/// It returns the stream's -errno; the others then try again, each for itself.
///
///     a call that is cancelled or fails    its message
///     ----------------------------------   ----------------------------------------------------
///     and was not accepted                 is not written
///     and was accepted                     is written by the other calls or, if there are none,
///                                          by the next one; so a program that repeats the call
///                                          may send the message twice
///     while the stream takes a message     is cut off, and the stream is torn: do not use
///     larger than the buffer               timeout() with such messages, or close the connection
///
/// The stream is also torn if it throws (the call rethrows), or if a coroutine is destroyed while
/// it writes. All calls that wait, and all later ones including shutdown_write(), then return
/// -EPIPE; stream() is still usable.
template <class Sink>
class shared_writer {
    static constexpr bool has_sink =
        byte_sink<Sink>; // a variable: otherwise the compiler also lists the constraints
    static_assert(has_sink, "a shared_writer writes to a byte_sink, such as a net::socket, a "
                            "tls::stream or a pipe_end");

public:
    static constexpr std::size_t default_capacity = 16 * 1024;

    shared_writer() COIL_DELETE_COPY("pass the stream to write to: shared_writer w{peer}");
    explicit shared_writer(Sink&& to, std::size_t capacity = default_capacity)
        : to_(static_cast<Sink&&>(to)), queue_(capacity) {}

    /// The underlying stream. Data written to it directly may end up within a message.
    [[nodiscard]] std::remove_reference_t<Sink>& stream() noexcept { return to_; }
    /// The number of accepted bytes that the stream has not taken yet.
    [[nodiscard]] std::size_t pending() const noexcept { return queue_.pending(); }

    /// Writes the message: its size or -errno; -EMSGSIZE if it has more than 0x7ffff000 bytes.
    COIL_CORO_WRAPPER task<io_result> write(const_buffer message COIL_LIFETIMEBOUND) {
        return send(message);
    }
    /// The same for a message in several parts, such as a header and a body. The list of parts must
    /// outlive the await, too.
    COIL_CORO_WRAPPER task<io_result>
    writev(std::span<const const_buffer> message COIL_LIFETIMEBOUND) {
        return send(message);
    }
    /// Produces a readable compiler error.
    template <detail::bare_pointer Data, std::integral Size>
    task<io_result> write(Data&& data, Size n)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    /// byte_sink: the same as write().
    COIL_CORO_WRAPPER task<io_result> write_some(const_buffer message COIL_LIFETIMEBOUND) {
        return send(message);
    }

    /// Waits until the messages of all earlier calls have been written: 0 or -errno. Writes what
    /// cancelled and failed calls have left.
    COIL_CORO_WRAPPER task<io_result> flush() { return send(std::span<const const_buffer>()); }

    /// flush(), then the stream's shutdown_write().
    task<io_result> shutdown_write() {
        const int flushed = co_await flush();
        if (flushed < 0) {
            co_return io_result(flushed);
        }
        co_return io_result(co_await to_.shutdown_write());
    }

private:
    static std::span<const const_buffer> parts_of(const const_buffer& whole) noexcept {
        return {&whole, 1};
    }
    static std::span<const const_buffer> parts_of(std::span<const const_buffer> parts) noexcept {
        return parts;
    }

    template <class Message>
    task<io_result> send(Message message) {
        detail::queued_write call(queue_, parts_of(message));
        if (co_await call) {
            co_await yield(); // the coroutines that are ready add their messages
        }
        while (call.leads()) {
            call.wrote(io_result(co_await to_.write_some(call.next_piece())));
        }
        co_return call.result();
    }

    Sink to_;
    detail::write_queue queue_;
};

template <class Sink>
shared_writer(Sink&&) -> shared_writer<Sink>;
template <class Sink>
shared_writer(Sink&&, std::size_t) -> shared_writer<Sink>;
shared_writer() -> shared_writer<detail::no_stream&>; // a readable compiler error

} // namespace coil
