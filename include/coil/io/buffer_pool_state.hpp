#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/multishot.hpp>
#include <coil/core/queue.hpp>
#include <coil/io/buffer_pool.hpp>
#include <coil/uring/buffer_ring.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace coil::detail {

/// What a buffer_pool, its streams and its leases share, and own together: the last one deletes it,
/// on the context's thread while there is a context.
///
/// Each buffer has a reference count: one for the kernel while it may still fill the buffer (or for
/// the pool's free list), one for each lease of a piece of it. Where it drops to zero the buffer
/// goes back to the kernel. All of that happens on the owner thread, except that leases may be
/// given back anywhere: another thread hangs the buffer into `returned_`, and a node into the
/// context's inbox.
class buffer_pool_state final : public ring_attachment, queue_node {
public:
    explicit buffer_pool_state(const buffer_pool_options& options);
    ~buffer_pool_state();
    buffer_pool_state(const buffer_pool_state&) = delete;
    buffer_pool_state& operator=(const buffer_pool_state&) = delete;

    [[nodiscard]] static buffer_pool_state& of(const buffer_pool& pool) noexcept {
        return *pool.state_;
    }

    void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept;

    // For streams, on the context's thread.

    /// Makes sure that there is a buffer to fill: 0, −errno, or 1 when `stream`, a buffer_source's
    /// node, has to wait for one. `bytes`: it does not mind where data is cut.
    int prepare(event_loop& loop, bool bytes, queue_node& stream) noexcept;
    /// The stream does not wait any more.
    void forget(queue_node& stream) noexcept { starved_.remove(stream); }
    /// There may be a buffer for one of those that wait.
    void feed_starved() noexcept;
    /// Whether the kernel picks buffers by itself; otherwise a stream brings one of its own.
    [[nodiscard]] bool has_ring() const noexcept { return static_cast<bool>(ring_); }
    [[nodiscard]] unsigned group() const noexcept { return ring_.group(); }
    /// Without a ring: a buffer for one request. prepare() has seen to it that there is one.
    [[nodiscard]] std::uint16_t take_free() noexcept;
    void put_free(std::uint16_t id) noexcept { drop(id); }
    /// The kernel has put `bytes` into the buffer: where they begin. `last`: it will not fill it
    /// on.
    [[nodiscard]] std::uint32_t filled(std::uint16_t id, std::uint32_t bytes, bool last) noexcept;
    [[nodiscard]] std::byte* address(std::uint16_t id) const noexcept {
        return chunks_[id / chunk_buffers_].get() + (id % chunk_buffers_) * buffer_size_;
    }

    /// Any thread.
    void give_back(std::uint16_t id) noexcept;

    [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }
    [[nodiscard]] unsigned size() const noexcept { return count_; }
    [[nodiscard]] unsigned available() const noexcept { return ready_; }

    void ring_gone() noexcept override;

private:
    struct free_memory {
        void operator()(std::byte* p) const noexcept;
    };
    using chunk = std::unique_ptr<std::byte[], free_memory>;

    struct buffer {
        std::atomic<std::uint32_t> references{0};
        std::uint32_t filled = 0;  // an incremental ring: where the kernel goes on
        std::uint16_t next = none; // in free_ or returned_
        bool with_kernel = false;  // it lies in the ring
    };
    static constexpr std::uint16_t none = 0xffff;

    [[nodiscard]] bool grow() noexcept;
    [[nodiscard]] int attach(event_loop& loop, bool bytes) noexcept;
    void drop(std::uint16_t id) noexcept;
    void make_available(std::uint16_t id) noexcept;
    void take_returned() noexcept;

    const std::size_t buffer_size_;
    const unsigned chunk_buffers_;
    const unsigned max_buffers_;
    const bool incremental_;

    uring::buffer_ring ring_;
    std::atomic<event_loop*> loop_{nullptr}; // written under mutex_
    std::vector<chunk> chunks_;
    std::unique_ptr<buffer[]> buffers_; // room for max_buffers_
    unsigned count_ = 0;
    unsigned ready_ = 0;        // buffers in the ring, or in free_ when there is none
    std::uint16_t free_ = none; // not in the ring
    fifo starved_;              // streams that wait for a buffer

    std::atomic<std::uint32_t> owners_{1};
    std::mutex mutex_; // other threads give back
    std::uint16_t returned_ = none;
    bool posted_ = false;
};

} // namespace coil::detail
