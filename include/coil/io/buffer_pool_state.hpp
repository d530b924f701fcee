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
///
/// A stream that the kernel refused for want of a buffer has data waiting. It hangs in `starved_`
/// until there is a buffer for it: then it is fed, that is, it asks the kernel again, which is
/// answered at once. As many are fed as there are buffers. Should one not take its buffer (somebody
/// else has read the data) or be refused again (another stream was faster), those behind it must
/// not wait for it: while there are buffers and hungry streams, the pool looks again each second
/// turn of the loop.
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

    /// How much a stream needs a buffer.
    enum class hunger : std::uint8_t {
        none,   ///< there may be no data for it
        some,   ///< the kernel refused it
        oldest, ///< the kernel refused it although it had been fed
    };
    /// Makes sure that there is a buffer to fill: 0, −errno, or 1 when `stream`, a buffer_source's
    /// node, has to wait for one. `bytes`: it does not mind where data is cut.
    int prepare(event_loop& loop, bool bytes, queue_node& stream, hunger how) noexcept;
    /// The stream does not wait any more.
    void forget(queue_node& stream) noexcept { starved_.remove(stream); }
    /// There may be a buffer for those that wait.
    void feed_starved() noexcept {
        if (ready_ > 0 && !starved_.empty()) [[unlikely]] {
            feed();
        }
    }
    /// A stream that was fed has got an answer. `round`: what it was given then.
    void answered(std::uint32_t round) noexcept {
        if (round == round_ && fed_ > 0) {
            --fed_;
        }
    }
    /// Whether a stream may share buffers with others.
    [[nodiscard]] bool is_incremental() const noexcept { return has_ring() && ring_.incremental(); }
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
        return chunks_[id >> chunk_shift_].get() + (id & (chunk_buffers_ - 1)) * buffer_size_;
    }

    /// Any thread.
    void give_back(std::uint16_t id) noexcept;

    [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }
    [[nodiscard]] unsigned size() const noexcept { return count_; }
    [[nodiscard]] unsigned available() const noexcept { return ready_; }
    [[nodiscard]] bool is_scarce() const noexcept {
        return ready_ <= count_ / 4 && count_ + chunk_buffers_ > max_buffers_;
    }

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

    /// In an inbox while the pool looks again.
    struct look_node : queue_node {
        buffer_pool_state* pool = nullptr;
        unsigned deliveries = 0; // left
    };

    void feed() noexcept;
    void look_again() noexcept;
    static void looked(queue_node& node, event_loop& loop) noexcept;
    [[nodiscard]] bool grow() noexcept;
    [[nodiscard]] int attach(event_loop& loop, bool bytes) noexcept;
    void drop(std::uint16_t id) noexcept;
    void make_available(std::uint16_t id) noexcept;
    static void take_delivery(queue_node& node, event_loop& loop) noexcept;
    void take_returned() noexcept;

    const std::size_t buffer_size_;
    const unsigned chunk_buffers_; // a power of two
    const int chunk_shift_;
    const unsigned max_buffers_;
    const bool incremental_;

    uring::buffer_ring ring_;
    std::atomic<event_loop*> loop_{nullptr}; // written under mutex_
    std::vector<chunk> chunks_;
    std::unique_ptr<buffer[]> buffers_; // room for max_buffers_
    unsigned count_ = 0;
    unsigned ready_ = 0;        // buffers in the ring, or in free_ when there is none
    std::uint16_t free_ = none; // not in the ring
    io_wait_queue starved_;     // streams that wait for a buffer
    unsigned fed_ = 0;          // streams that were fed in this round and not answered yet
    std::uint32_t round_ = 1;   // never 0
    bool feeding_ = false;
    bool looking_ = false;
    look_node look_;

    std::atomic<std::uint32_t> owners_{1};
    std::mutex mutex_; // other threads give back, and find out whether there is a ring
    std::uint16_t returned_ = none;
    bool posted_ = false;
};

} // namespace coil::detail
