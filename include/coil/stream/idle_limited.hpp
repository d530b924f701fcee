#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/progress.hpp>

#include <cerrno>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

/// A byte_stream with a time limit that restarts whenever bytes are transferred. It protects
/// against peers that stop sending or reading in the middle of a long transfer.
///
///     idle_limited in{socket, 30s};
///     buffered_reader reader{in};
///     int n = co_await reader.read_exact(large);   // -ETIMEDOUT after 30 s without a byte
///
/// A call returns -ETIMEDOUT when it has waited for `idle` while neither direction transferred
/// anything. The time between calls does not count. timeout(call, d), in contrast, limits the whole
/// call. The stream stays usable. For copy() and duplex() pass transfer_options instead.
///
/// Constructed from an lvalue, it refers to the stream; from an rvalue (std::move(socket)), it owns
/// it.
///
/// Threading: on one context at a time; one read and one write may be in flight together.
/// Time: context_clock, so in a simulated world the world's time. Cancellation: the stream's own. A
/// call that completes while it is being stopped returns its result, so no bytes are lost.
template <class Stream>
class idle_limited {
    static constexpr bool has_stream = byte_source<Stream> || byte_sink<Stream>;
    static_assert(has_stream, "an idle_limited limits a byte_stream, such as a net::socket, a "
                              "tls::stream or a pipe_end");

public:
    idle_limited(Stream&& of, std::chrono::nanoseconds idle) noexcept(
        std::is_nothrow_constructible_v<Stream, Stream&&>)
        : stream_(static_cast<Stream&&>(of)), idle_(idle) {}

    /// The underlying stream. Its own calls have no limit and do not restart this one.
    [[nodiscard]] std::remove_reference_t<Stream>& stream() noexcept { return stream_; }

    /// byte_source.
    task<io_result> read_some(mutable_buffer to COIL_LIFETIMEBOUND)
        requires byte_source<Stream>
    {
        detail::observed_stream observed(stream_, progress_);
        std::optional<io_result> result;
        const bool expired = co_await progress_.try_limit(observed.read_some(to), idle_, result);
        co_return outcome(result, expired);
    }
    /// byte_sink.
    task<io_result> write_some(const_buffer from COIL_LIFETIMEBOUND)
        requires byte_sink<Stream>
    {
        detail::observed_stream observed(stream_, progress_);
        std::optional<io_result> result;
        const bool expired = co_await progress_.try_limit(observed.write_some(from), idle_, result);
        co_return outcome(result, expired);
    }
    /// The stream's shutdown_write(), without a limit.
    auto shutdown_write()
        requires byte_sink<Stream>
    {
        return stream_.shutdown_write();
    }

private:
    static io_result outcome(const std::optional<io_result>& result, bool expired) noexcept {
        const int n = result.value_or(io_result(-ECANCELED));
        return io_result(n == -ECANCELED && expired ? -ETIMEDOUT : n);
    }

    Stream stream_;
    std::chrono::nanoseconds idle_;
    detail::progress progress_;
};

template <class Stream>
idle_limited(Stream&&, std::chrono::nanoseconds) -> idle_limited<Stream>;

} // namespace coil
