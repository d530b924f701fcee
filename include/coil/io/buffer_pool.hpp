#pragma once

#include <coil/base/exchange.hpp>
#include <coil/io/buffer_lease.hpp>

#include <cstddef>

namespace coil {

namespace detail {
class buffer_pool_state; // NOLINT(*-virtual-class-destructor): it is final
} // namespace detail

/// Options of a buffer_pool.
struct buffer_pool_options {
    /// The initial number of buffers; rounded up to a power of two, at most 32768.
    unsigned buffers = 64;
    /// The size of each buffer in bytes, rounded up to a multiple of 64.
    std::size_t buffer_size = 4096;
    /// The maximum number of buffers, rounded up to a power of two: when all are in use, the pool
    /// grows by `buffers` at a time. 0: it does not grow. If no buffer is free and the pool cannot
    /// grow, a stream that needs a buffer waits until one is returned.
    unsigned max_buffers = 0;
    /// Lets the kernel fill one buffer with several pieces of data (Linux 6.12) instead of using a
    /// whole buffer for each: small pieces share a buffer, which is free again when all their
    /// leases have been returned. Ignored if the kernel does not support this, or if the pool's
    /// first stream is not a byte stream: a datagram that does not fit into the rest of a buffer
    /// would be truncated. (A datagram stream fails with -EINVAL if byte streams already share
    /// buffers of its pool.)
    bool incremental = true;
};

/// Receive buffers shared by many streams: a connection that waits for data holds no buffer.
///
///     coil::buffer_pool pool;
///     auto incoming = io::recv_multishot(fd, pool);
///     while (auto chunk = co_await incoming.next())
///         use(chunk->bytes());
///
/// The pool belongs to the first context on which one of its streams is awaited, and serves any
/// number of streams of that context. Destroying the pool is always safe: streams and leases keep
/// its memory alive. It uses a provided-buffer ring (Linux 6.0, with multishot receives); on older
/// kernels each waiting stream takes a buffer of its own.
///
/// Threading: one context at a time, except for leases; a stream on another context returns -EXDEV.
class buffer_pool {
public:
    /// 64 buffers of 4 KiB. All constructors may throw std::bad_alloc.
    buffer_pool() : buffer_pool(buffer_pool_options{}) {}
    buffer_pool(unsigned buffers, std::size_t buffer_size);
    explicit buffer_pool(const buffer_pool_options& options);
    buffer_pool(buffer_pool&& other) noexcept
        : state_(coil::detail::exchange(other.state_, nullptr)) {}
    buffer_pool& operator=(buffer_pool&& other) noexcept {
        coil::detail::swap_values(state_, other.state_);
        return *this;
    }
    ~buffer_pool();

    [[nodiscard]] std::size_t buffer_size() const noexcept;
    /// The current number of buffers.
    [[nodiscard]] unsigned size() const noexcept;
    /// The number of buffers that can still receive data. (If they are incremental, pieces of them
    /// may be leased already.) Call it on the thread of the pool's context.
    [[nodiscard]] unsigned available() const noexcept;

private:
    friend class detail::buffer_pool_state;

    detail::buffer_pool_state* state_;
};

} // namespace coil
