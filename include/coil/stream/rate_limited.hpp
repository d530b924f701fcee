#pragma once

#include <coil/context/sleep.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/token_bucket.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace coil {

/// A limit of a rate_limited stream, for one direction.
struct byte_rate {
    /// Bytes per second in the long run; 0: no limit.
    std::uint64_t per_second = 0;
    /// Bytes that may pass at once after a pause, at most 0x7ffff000; 0: a tenth of `per_second`. A
    /// single call never transfers more.
    std::size_t burst = 0;
};

/// The limits of a rate_limited stream.
struct rate_limits {
    byte_rate read = {};
    byte_rate write = {};
};

/// A byte_stream that transfers the bytes of another one at a limited rate (a token bucket for each
/// direction, which begins full).
///
///     rate_limited slow{socket, {.read = {.per_second = 1'000'000, .burst = 64 * 1024}}};
///     co_await copy(slow, file);
///
/// A call waits until the limit lets some bytes pass, and transfers at most those. Bytes that may
/// not be read yet stay in the transport, whose flow control then slows down the peer.
///
/// Constructed from an lvalue, it refers to the stream; from an rvalue (std::move(socket)), it owns
/// it. Each object has its own limits: it cannot limit the sum of several connections.
///
/// Threading: on one context at a time; one read and one write may be in flight together. Time:
/// context_clock, so in a simulated world the world's time. Cancellation: -ECANCELED. A call that
/// is cancelled while it waits for the limit has transferred nothing and consumes no tokens; once
/// it has called the stream, it behaves as the stream's own call.
template <class Stream>
class rate_limited {
    static constexpr bool has_stream = byte_source<Stream> || byte_sink<Stream>;
    static_assert(has_stream, "a rate_limited limits a byte_stream, such as a net::socket, a "
                              "tls::stream or a pipe_end");

public:
    explicit rate_limited(Stream&& of, const rate_limits& limits) noexcept(
        std::is_nothrow_constructible_v<Stream, Stream&&>)
        : stream_(static_cast<Stream&&>(of)), read_(bucket(limits.read)),
          write_(bucket(limits.write)) {}

    /// The underlying stream, whose own calls are not limited.
    [[nodiscard]] std::remove_reference_t<Stream>& stream() noexcept { return stream_; }

    /// byte_source: reads at most as many bytes as the limit lets pass.
    task<io_result> read_some(mutable_buffer to COIL_LIFETIMEBOUND)
        requires byte_source<Stream>
    {
        if (const int error = co_await wait_for(read_, to.size()); error < 0) {
            co_return io_result(error);
        }
        const int n = io_result(co_await stream_.read_some({to.data(), most(read_, to.size())}));
        if (n > 0) {
            read_.take(static_cast<std::size_t>(n));
        }
        co_return io_result(n);
    }
    /// byte_sink: writes at most as many bytes as the limit lets pass.
    task<io_result> write_some(const_buffer from COIL_LIFETIMEBOUND)
        requires byte_sink<Stream>
    {
        if (const int error = co_await wait_for(write_, from.size()); error < 0) {
            co_return io_result(error);
        }
        const int n =
            io_result(co_await stream_.write_some({from.data(), most(write_, from.size())}));
        if (n > 0) {
            write_.take(static_cast<std::size_t>(n));
        }
        co_return io_result(n);
    }
    /// The stream's shutdown_write(), which does not wait for the limit.
    auto shutdown_write()
        requires byte_sink<Stream>
    {
        return stream_.shutdown_write();
    }

private:
    static detail::token_bucket bucket(const byte_rate& rate) noexcept {
        constexpr std::uint64_t bursts_per_second = 10;
        return {rate.per_second,
                rate.burst > 0 ? rate.burst
                               : static_cast<std::size_t>(rate.per_second / bursts_per_second)};
    }

    [[nodiscard]] static std::size_t most(detail::token_bucket& bucket, std::size_t size) noexcept {
        return bucket.is_limited() ? detail::min(size, bucket.available()) : size;
    }

    /// Waits until some bytes of a call for `size` bytes may pass: 0 or -errno.
    static task<io_result> wait_for(detail::token_bucket& bucket, std::size_t size) {
        if (bucket.is_limited()) {
            const std::size_t wanted = bucket.worth_waiting_for(size);
            while (bucket.available() < wanted) {
                const int error = co_await sleep_until(bucket.time_of(wanted));
                if (error < 0) {
                    co_return io_result(error);
                }
            }
        }
        co_return io_result(0);
    }

    Stream stream_;
    detail::token_bucket read_;
    detail::token_bucket write_;
};

template <class Stream>
rate_limited(Stream&&, rate_limits) -> rate_limited<Stream>;

} // namespace coil
