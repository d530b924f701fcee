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

/// How a buffer_pool is made.
struct buffer_pool_options {
    /// How many buffers there are at first; rounded up to a power of two, at most 32768.
    unsigned buffers = 64;
    /// Bytes in each, rounded up to a multiple of 64.
    std::size_t buffer_size = 4096;
    /// When all are in use the pool grows, by `buffers` at a time, up to this many; 0: it does not
    /// grow. A stream that needs a buffer when there is none and the pool cannot grow waits until
    /// one is given back.
    unsigned max_buffers = 0;
    /// Let the kernel fill a buffer by and by (Linux 6.12) instead of giving a whole one to each
    /// piece of data: what comes in small pieces shares a buffer, which is free again when all of
    /// them have been given back. Ignored where the kernel cannot, and when the pool's first stream
    /// is not one of bytes: a datagram that does not fit in the rest of a buffer would be cut off.
    /// (Such a stream gives -EINVAL when byte streams share buffers of its pool already.)
    bool incremental = true;
};

/// A piece of a pool's memory with data in it, owned: it gives itself back when it is destroyed,
/// and it keeps the pool's memory alive. Move-only.
///
/// Threading: one thread at a time, but any thread; one that is given back on another thread than
/// the pool's context's reaches it with the next look into its inbox.
class buffer_lease {
public:
    buffer_lease() noexcept = default;
    buffer_lease(buffer_lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)), id_(other.id_) {}
    /// Gives back what it had, now.
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

    /// Whether there is a buffer.
    [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }

    /// The data. Nobody else reads or writes it; it may be changed in place.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept COIL_LIFETIMEBOUND {
        return {data_, size_};
    }
    [[nodiscard]] std::string_view text() const noexcept COIL_LIFETIMEBOUND {
        return {reinterpret_cast<const char*>(data_), size_};
    }
    [[nodiscard]] std::byte* data() const noexcept COIL_LIFETIMEBOUND { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Gives it back now; bytes() is empty then.
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

    detail::buffer_pool_state* pool_ = nullptr; // it counts its leases
    std::byte* data_ = nullptr;
    std::uint32_t size_ = 0;
    std::uint16_t id_ = 0;
};

/// Buffers that the kernel may fill for many streams: a connection that waits for data holds none.
///
///     coil::buffer_pool pool;
///     auto incoming = io::recv_multishot(fd, pool);
///     while (auto chunk = co_await incoming.next())
///         use(chunk->bytes());
///
/// The pool belongs to the first context on which one of its streams is awaited, and serves any
/// number of streams there. Destroying the pool is always safe: streams and leases keep its memory.
/// It uses a provided-buffer ring (Linux 5.19); on an older kernel each stream that waits takes a
/// buffer of its own.
///
/// Threading: one context at a time, except for leases.
class buffer_pool {
public:
    /// 64 buffers of 4 KiB. Throws std::bad_alloc, as the others do.
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
    /// How many buffers there are now.
    [[nodiscard]] unsigned size() const noexcept;
    /// How many of them no lease holds. (A pool's context's thread.)
    [[nodiscard]] unsigned available() const noexcept;

private:
    friend class detail::buffer_pool_state;

    detail::buffer_pool_state* state_;
};

} // namespace coil
