#pragma once

#include <coil/compose/when_all.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/write_all.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

namespace coil {

namespace detail {

inline constexpr std::size_t copy_buffer_size = 64 * 1024;

} // namespace detail

/// Copies from `from` to `to` until `from` ends, and gives the number of bytes. `to` stays open.
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
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(detail::copy_buffer_size);
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

/// The result of duplex(): the bytes copied in each direction.
struct duplex_counts {
    std::uint64_t a_to_b = 0;
    std::uint64_t b_to_a = 0;
};

namespace detail {

/// One direction of duplex(). If both fail, only the first failure is thrown; `failed` is shared by
/// both directions.
template <coil::byte_source From, coil::byte_sink To>
task<std::uint64_t> copy_and_shut_down(From& from, To& to, bool& failed) {
    std::uint64_t total = 0;
    try {
        total = co_await copy(from, to);
        const int result = io_result(co_await to.shutdown_write());
        // A peer that has already closed its end is not an error.
        if (result < 0 && result != -ENOTCONN && result != -EPIPE) {
            throw std::system_error(-result, std::generic_category(), "coil: shutdown");
        }
    } catch (const std::system_error&) {
        if (!std::exchange(failed, true)) {
            throw;
        }
    }
    co_return total;
}

} // namespace detail

/// Connects two streams, as a proxy does, by copying in both directions at once. When one stream
/// ends, the writing side of the other stream is shut down, while data still flows in the opposite
/// direction (half-close). Returns when both have ended. An error in one direction cancels the
/// other and is thrown.
template <byte_stream A, byte_stream B>
task<duplex_counts> duplex(A& a, B& b) {
    bool failed = false;
    auto [there, back] = co_await when_all(detail::copy_and_shut_down(a, b, failed),
                                           detail::copy_and_shut_down(b, a, failed));
    co_return duplex_counts{there, back};
}

} // namespace coil
