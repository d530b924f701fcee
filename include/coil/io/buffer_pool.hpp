#pragma once

#include <coil/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace coil {

namespace detail {
class buffer_pool_state; // NOLINT(*-virtual-class-destructor): it is final
class buffer_source;
} // namespace detail

/// Options of a buffer_pool.
struct buffer_pool_options {
    /// The initial number of buffers; rounded up to a power of two, at most 32768.
    unsigned buffers = 64;
    /// The size of each buffer in bytes, rounded up to a multiple of 64.
    std::size_t buffer_size = 4096;
    /// When all buffers are in use the pool grows by `buffers` at a time, up to this many; 0: it
    /// does not grow. A stream that needs a buffer while none is free and the pool cannot grow
    /// waits until a buffer is returned.
    unsigned max_buffers = 0;
    /// Lets the kernel fill one buffer with several pieces of data (Linux 6.12) instead of using a
    /// whole buffer for each: small pieces share a buffer, which is free again when all their
    /// leases have been returned. Ignored if the kernel lacks it, or if the pool's first stream is
    /// not a byte stream: a datagram that does not fit into the rest of a buffer would be
    /// truncated. (A datagram stream gives -EINVAL if byte streams already share buffers of its
    /// pool.)
    bool incremental = true;
};

/// A piece of a pool's memory that holds data. The destructor returns it to the pool; until then it
/// keeps the pool's memory alive. Move-only.
///
/// Threading: one thread at a time, but any thread. A lease returned on a thread other than that of
/// the pool's context reaches the pool when the context next processes its inbox.
class buffer_lease {
public:
    buffer_lease() noexcept = default;
    buffer_lease(buffer_lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)), id_(other.id_) {}
    /// Returns the previous buffer immediately.
    buffer_lease& operator=(buffer_lease&& other) noexcept {
        if (this != &other) {
            reset();
            pool_ = std::exchange(other.pool_, nullptr);
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            id_ = other.id_;
        }
        return *this;
    }
    ~buffer_lease() { reset(); }

    /// Whether the lease holds a buffer.
    [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }

    /// The data. The lease has exclusive access; the data may be modified in place.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept COIL_LIFETIMEBOUND {
        return {data_, size_};
    }
    [[nodiscard]] std::string_view text() const noexcept COIL_LIFETIMEBOUND {
        return {reinterpret_cast<const char*>(data_), size_};
    }
    [[nodiscard]] std::byte* data() const noexcept COIL_LIFETIMEBOUND { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Returns the buffer immediately; bytes() is empty afterwards.
    void reset() noexcept {
        if (pool_ != nullptr) {
            give_back();
        }
    }

private:
    friend class detail::buffer_source;
    buffer_lease(detail::buffer_pool_state& pool, std::byte* data, std::uint32_t size,
                 std::uint16_t id) noexcept
        : pool_(&pool), data_(data), size_(size), id_(id) {}

    void give_back() noexcept;

    detail::buffer_pool_state* pool_ = nullptr; // counts its leases
    std::byte* data_ = nullptr;
    std::uint32_t size_ = 0;
    std::uint16_t id_ = 0;
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
/// its memory alive. It uses a provided-buffer ring (Linux 5.19); on older kernels each waiting
/// stream takes a buffer of its own.
///
/// Threading: one context at a time, except for leases.
class buffer_pool {
public:
    /// 64 buffers of 4 KiB. All constructors may throw std::bad_alloc.
    buffer_pool() : buffer_pool(buffer_pool_options{}) {}
    buffer_pool(unsigned buffers, std::size_t buffer_size);
    explicit buffer_pool(const buffer_pool_options& options);
    buffer_pool(buffer_pool&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    buffer_pool& operator=(buffer_pool&& other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~buffer_pool();

    [[nodiscard]] std::size_t buffer_size() const noexcept;
    /// The current number of buffers.
    [[nodiscard]] unsigned size() const noexcept;
    /// The number of buffers not held by a lease. Call it on the thread of the pool's context.
    [[nodiscard]] unsigned available() const noexcept;

private:
    friend class detail::buffer_pool_state;

    detail::buffer_pool_state* state_;
};

} // namespace coil
