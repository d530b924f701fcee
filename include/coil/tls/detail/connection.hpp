#pragma once

#include <coil/compose/when_any.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/tls/context.hpp>
#include <coil/tls/detail/engine.hpp>
#include <coil/tls/detail/transfer_lock.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <sys/socket.h>

namespace coil::tls::detail {

/// The I/O of an engine. Each function calls OpenSSL, sends its output, and receives when OpenSSL
/// wants input, until the call of OpenSSL has a result.
template <class Transport>
struct connection {
    connection(Transport&& t, const context& ctx) : transport(std::move(t)), engine(ctx) {}

    Transport transport;
    detail::engine engine;
};

/// Gives functions of this library the connection of a stream.
struct connection_access {
    template <class Stream>
    static auto& of(Stream& s) noexcept {
        return *s.c_;
    }
};

/// The descriptor of a transport that is a socket, otherwise -1.
template <class Transport>
int socket_of(const connection<Transport>& c) noexcept {
    if constexpr (is_plain_socket<Transport>) {
        return c.transport.native_handle();
    } else {
        return -1;
    }
}

/// Waits for a lock that another coroutine holds: 0, or -ECANCELED if the task is cancelled.
[[gnu::noinline]] inline task<io_result> acquire(transfer_lock& lock) {
    try {
        co_await lock.contended().lock();
    } catch (const std::system_error& e) {
        co_return io_result(-e.code().value());
    } catch (const std::bad_alloc&) {
        co_return io_result(-ENOMEM);
    }
    co_return io_result(0);
}

/// Sends output whose record type is not application data. Returns the bytes sent, or -errno.
template <class Transport>
COIL_CORO_WRAPPER task<io_result> send_typed(connection<Transport>& c, int flags) {
    // Only a socket has such output.
    return send_record(socket_of(c), c.engine.output_type(), c.engine.output(), flags);
}

/// What flush() does with the send lock when it has sent everything.
enum class after_flush : unsigned char { unlock, keep_locked };

/// Sends the whole output. Returns 0, or -errno; the rest then remains for the next call, and the
/// lock is released in any case. If another coroutine is sending, waits for it. Output is sent in
/// the order in which it was produced.
template <class Transport>
task<io_result> flush(connection<Transport>& c, after_flush then = after_flush::unlock) {
    if (!c.engine.send_lock.try_lock()) {
        const int locked = co_await acquire(c.engine.send_lock);
        if (locked < 0) {
            co_return io_result(locked);
        }
    }
    transfer_lock::guard held(c.engine.send_lock);
    while (c.engine.has_output()) {
        transfer mark(c.engine);
        int n = 0;
        if (c.engine.output_type() != 0) [[unlikely]] {
            n = co_await send_typed(c, 0);
        } else {
            n = io_result(co_await c.transport.write_some(c.engine.output()));
        }
        mark.over();
        if (n <= 0) {
            co_return io_result(n == 0 ? -EIO : n);
        }
        c.engine.sent(static_cast<std::size_t>(n));
    }
    if (then == after_flush::keep_locked) {
        held.keep_locked();
    }
    co_return io_result(0);
}

template <class Transport>
concept sends_without_waiting = requires(Transport& t, const_buffer b) { t.send(b, MSG_DONTWAIT); };

/// Sends output that a read has caused: the answer to a KeyUpdate, or an alert. A read must not
/// wait until the peer reads, because the peer may wait until this side reads. What cannot be sent
/// now is sent while the read waits, or before the next data, as RFC 8446 (4.6.3) requires. A
/// coroutine that is sending sends this output as well.
template <class Transport>
[[gnu::noinline]] task<> flush_without_waiting(connection<Transport>& c) {
    if (!c.engine.send_lock.try_lock()) {
        co_return;
    }
    const transfer_lock::guard held(c.engine.send_lock);
    while (c.engine.has_output()) {
        transfer mark(c.engine);
        int n = 0;
        if (c.engine.output_type() != 0) [[unlikely]] {
            n = co_await send_typed(c, MSG_DONTWAIT);
        } else {
            n = io_result(co_await c.transport.send(c.engine.output(), MSG_DONTWAIT));
        }
        mark.over();
        if (n <= 0) {
            co_return;
        }
        c.engine.sent(static_cast<std::size_t>(n));
    }
}

/// Receives once: 1, or -errno. `seen` is the value of inputs() before OpenSSL asked for input: if
/// another coroutine has received since, OpenSSL must be asked again.
template <class Transport>
task<io_result> receive(connection<Transport>& c, unsigned seen) {
    if (!c.engine.receive_lock.try_lock()) {
        const int locked = co_await acquire(c.engine.receive_lock);
        if (locked < 0) {
            co_return io_result(locked);
        }
    }
    const transfer_lock::guard held(c.engine.receive_lock);
    if (c.engine.inputs() != seen) {
        co_return io_result(1);
    }
    transfer mark(c.engine);
    const int n = io_result(co_await c.transport.read_some(c.engine.input_room()));
    mark.over();
    if (n < 0) {
        co_return io_result(n);
    }
    c.engine.received(static_cast<std::size_t>(n));
    co_return io_result(1);
}

/// For a step that wants input: sends its output, then receives. 1, or -errno.
template <class Transport>
task<io_result> exchange(connection<Transport>& c, unsigned seen) {
    if (c.engine.has_output()) {
        const int sent = co_await flush(c);
        if (sent < 0) {
            co_return io_result(sent);
        }
    }
    co_return co_await receive(c, seen);
}

template <class Transport>
task<io_result> establish(connection<Transport>& c) {
    for (;;) {
        const unsigned seen = c.engine.inputs();
        const step s = c.engine.handshake();
        if (s.wants_input) {
            const int n = co_await exchange(c, seen);
            if (n < 0) {
                co_return io_result(n);
            }
            continue;
        }
        if (c.engine.has_output() && !c.engine.output_can_wait()) {
            // The output is the last flight, or an alert. Sending session tickets, which a kernel
            // that encrypts does not let wait, fails if the peer has closed immediately after
            // sending its request, but the request can still be read. Therefore only a cancellation
            // is reported here; the next call reports any other error.
            const int sent = co_await flush(c);
            if (s.result >= 0 && sent == -ECANCELED) {
                co_return io_result(sent);
            }
        }
        co_return s.result;
    }
}

template <class Transport>
task<io_result> connect(connection<Transport>& c, std::string name) {
    const int begun = c.engine.begin_client(std::move(name));
    if (begun < 0) {
        co_return io_result(begun);
    }
    c.engine.offer_socket(socket_of(c)); // for kernel_sender
    co_return co_await establish(c);
}

template <class Transport>
task<io_result> accept(connection<Transport>& c) {
    const int begun = c.engine.begin_server();
    if (begun < 0) {
        co_return io_result(begun);
    }
    c.engine.offer_socket(socket_of(c)); // for kernel_sender
    co_return co_await establish(c);
}

/// Receives once, for a read: 1, or -errno. Remaining output is sent at the same time. Neither may
/// wait for the other: the peer may read only after this side has read, or send only after it has
/// received the rest of a write.
template <class Transport>
[[gnu::noinline]] task<io_result> receive_and_flush(connection<Transport>& c, unsigned seen) {
    if (c.engine.has_output() && c.engine.send_lock.try_lock()) {
        c.engine.send_lock.unlock(); // if it was locked, its owner sends all output
        const auto first = co_await when_any(receive(c, seen), flush(c));
        if (first.index == 0) {
            co_return std::get<0>(first.value);
        }
        // The output is sent, or cannot be sent, which is not an error of a read.
    }
    co_return co_await receive(c, seen);
}

template <class Transport>
task<io_result> read(connection<Transport>& c, mutable_buffer to) {
    if (to.size() == 0) {
        co_return io_result(0);
    }
    for (;;) {
        const unsigned seen = c.engine.inputs();
        const step s = c.engine.read(to);
        if constexpr (sends_without_waiting<Transport>) {
            if (c.engine.has_output() && (s.wants_input || !c.engine.output_can_wait())) {
                co_await flush_without_waiting(c);
            }
        }
        if (!s.wants_input) {
            co_return s.result;
        }
        int n = 0;
        if (c.engine.has_output() || c.engine.inputs() != seen ||
            !c.engine.receive_lock.try_lock()) {
            n = co_await receive_and_flush(c, seen);
        } else {
            // The same as receive(), but without another frame: idle connections wait here.
            const transfer_lock::guard held(c.engine.receive_lock);
            transfer mark(c.engine);
            n = io_result(co_await c.transport.read_some(c.engine.input_room()));
            mark.over();
            if (n >= 0) {
                c.engine.received(static_cast<std::size_t>(n));
            }
        }
        if (n < 0) {
            co_return io_result(n);
        }
    }
}

template <class Transport>
task<io_result> write(connection<Transport>& c, const_buffer from) {
    if (c.engine.has_output() && !c.engine.output_can_wait()) {
        // Output of an earlier call that was cancelled or failed: no data is accepted before it is
        // sent. (Session tickets are sent with the data.)
        const int sent = co_await flush(c);
        if (sent < 0) {
            co_return io_result(sent);
        }
    }
    if (from.size() == 0) {
        co_return io_result(0);
    }
    from = {from.data(), std::min(from.size(), engine::largest_write)};
    for (;;) {
        const unsigned seen = c.engine.inputs();
        const step s = c.engine.write(from);
        if (!s.wants_input) {
            if (c.engine.has_output()) {
                // The data is accepted; what is not sent now is sent by the next call.
                co_await flush(c);
            }
            co_return s.result;
        }
        const int n = co_await exchange(c, seen);
        if (n < 0) {
            co_return io_result(n);
        }
    }
}

/// Runs a step that returns 0 on success, and sends its output.
template <class Transport>
task<io_result> run_and_flush(connection<Transport>& c, step (engine::*call)() noexcept) {
    for (;;) {
        const unsigned seen = c.engine.inputs();
        const step s = (c.engine.*call)();
        if (s.wants_input) {
            const int n = co_await exchange(c, seen);
            if (n < 0) {
                co_return io_result(n);
            }
            continue;
        }
        if (s.result < 0) {
            co_return s.result;
        }
        co_return co_await flush(c);
    }
}

template <class Transport>
COIL_CORO_WRAPPER task<io_result> close_writing(connection<Transport>& c) {
    return run_and_flush(c, &engine::close);
}

template <class Transport>
COIL_CORO_WRAPPER task<io_result> update_keys(connection<Transport>& c) {
    return run_and_flush(c, &engine::update_keys);
}

template <class Transport>
task<io_result> close(connection<Transport>& c) {
    const int closed = co_await close_writing(c);
    // A peer that has sent its close_notify may have closed the transport already.
    const bool may_be_late = closed == -EPIPE || closed == -ECONNRESET;
    if (closed < 0 && !may_be_late) {
        co_return io_result(closed);
    }
    std::array<std::byte, 512> discarded;
    for (;;) {
        const int n = co_await read(c, mutable_buffer(discarded.data(), discarded.size()));
        if (n == 0) {
            co_return io_result(0);
        }
        if (n < 0) {
            co_return io_result(may_be_late ? closed : n);
        }
    }
}

} // namespace coil::tls::detail
