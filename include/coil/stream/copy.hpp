#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/owned.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/compose/when_all.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/progress.hpp>
#include <coil/stream/detail/splice.hpp>
#include <coil/stream/write_all.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

inline constexpr std::size_t copy_buffer_size = 64 * 1024;

} // namespace detail

/// Options of copy() and duplex().
struct transfer_options {
    /// The time without progress after which the transfer is cancelled and std::errc::timed_out is
    /// thrown; 0: no limit. Every byte that is read or written, in either direction, restarts it.
    std::chrono::milliseconds idle{0};
};

/// Copies from `from` to `to` until `from` ends, and returns the number of bytes. `to` stays open.
///
///     co_await copy(file, socket);
///
/// Throws std::system_error with the error of the read or write that failed. After a failed read,
/// everything read before has been written. Both streams must outlive the await.
///
/// Threading: runs on the awaiting context. Cancellation: std::errc::operation_canceled; up to 64
/// KiB that were read may not have been written.
template <byte_source From, byte_sink To>
task<std::uint64_t> copy(From& from, To& to) {
    const detail::owned<std::byte[]> memory(new std::byte[detail::copy_buffer_size]);
    const mutable_buffer buffer(memory.get(), detail::copy_buffer_size);
    std::uint64_t total = 0;
    for (;;) {
        const int n = io_result(co_await from.read_some(buffer)).value();
        if (n == 0) {
            co_return total;
        }
        const const_buffer got(memory.get(), n);
        total += static_cast<std::uint64_t>(io_result(co_await write_all(to, got)).value());
    }
}

/// The same with a limit for the time without progress.
///
///     co_await copy(socket, file, {.idle = 30s});
template <byte_source From, byte_sink To>
task<std::uint64_t> copy(From& from, To& to, transfer_options options) {
    if (options.idle.count() <= 0) {
        co_return co_await copy(from, to);
    }
    detail::progress moved;
    detail::observed_stream source(from, moved);
    detail::observed_stream sink(to, moved);
    co_return co_await moved.limit(copy(source, sink), options.idle);
}

/// Produces a readable compiler error.
template <class From, class To>
    requires(!byte_source<From> || !byte_sink<To> || !std::is_lvalue_reference_v<From> ||
             !std::is_lvalue_reference_v<To>)
task<std::uint64_t> copy(From&&, To&&)
    COIL_DELETE("copy(from, to) takes two named streams, a byte_source and a byte_sink, such as "
                "fs::file, net::socket and pipe_end");

/// The result of duplex(): the bytes copied in each direction.
struct duplex_counts {
    std::uint64_t a_to_b = 0;
    std::uint64_t b_to_a = 0;
};

namespace detail {

/// One direction of duplex(): awaits `copying`, then shuts down `to`. Returns the number of bytes
/// copied. The directions share `failed`: if both fail, only the first failure is thrown.
template <coil::byte_sink To>
task<std::uint64_t> copy_and_shut_down(task<std::uint64_t> copying, To& to, bool& failed) {
    std::uint64_t total = 0;
    try {
        total = co_await std::move(copying);
        const int result = io_result(co_await to.shutdown_write());
        // A peer that has already closed its end is not an error.
        if (result < 0 && result != -ENOTCONN && result != -EPIPE) {
            throw std::system_error(-result, std::generic_category(), "coil: shutdown");
        }
    } catch (const std::system_error&) {
        if (!coil::detail::exchange(failed, true)) {
            throw;
        }
    }
    co_return total;
}

template <class A, class B>
task<duplex_counts> duplex_by(task<std::uint64_t> there, task<std::uint64_t> back, A& a, B& b) {
    bool failed = false;
    const auto [sent, received] = co_await when_all(copy_and_shut_down(std::move(there), b, failed),
                                                    copy_and_shut_down(std::move(back), a, failed));
    co_return duplex_counts{sent, received};
}

template <class A, class B>
COIL_CORO_WRAPPER task<duplex_counts> duplex_spliced(A& a, B& b, spliced_pair& pair) {
    return duplex_by(splice_copy(a.native_handle(), b.native_handle(), pair),
                     splice_copy(b.native_handle(), a.native_handle(), pair), a, b);
}

} // namespace detail

/// Connects two streams, as a proxy does, by copying in both directions concurrently. When one
/// stream ends, the writing side of the other stream is shut down, while data still flows in the
/// opposite direction (half-close). Returns when both have ended. An error in one direction cancels
/// the other and is thrown.
///
/// Between two sockets, large amounts of data are moved without being copied (splice(2)). The
/// sockets are non-blocking meanwhile, so no other call may be in flight on them. After an error or
/// a cancellation, up to 256 KiB that were received in each direction may not have been sent.
template <byte_stream A, byte_stream B>
task<duplex_counts> duplex(A& a, B& b) {
    if constexpr (is_plain_socket<A> && is_plain_socket<B>) {
        detail::spliced_pair pair(a.native_handle(), b.native_handle());
        if (pair.possible()) {
            co_return co_await detail::duplex_spliced(a, b, pair);
        }
    }
    co_return co_await detail::duplex_by(copy(a, b), copy(b, a), a, b);
}

/// The same with a limit for the time without progress in both directions together.
///
///     co_await duplex(client, server, {.idle = 5min});
template <byte_stream A, byte_stream B>
task<duplex_counts> duplex(A& a, B& b, transfer_options options) {
    if (options.idle.count() <= 0) {
        co_return co_await duplex(a, b);
    }
    detail::progress moved;
    if constexpr (is_plain_socket<A> && is_plain_socket<B>) {
        detail::spliced_pair pair(a.native_handle(), b.native_handle(), &moved);
        if (pair.possible()) {
            co_return co_await moved.limit(detail::duplex_spliced(a, b, pair), options.idle);
        }
    }
    detail::observed_stream first(a, moved);
    detail::observed_stream second(b, moved);
    co_return co_await moved.limit(duplex(first, second), options.idle);
}

} // namespace coil
