#pragma once

#include <coil/base/owned.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/multishot.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/io/buffer_pool.hpp>
#include <coil/uring/buffer_ring.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace coil::detail {

/// The state shared and jointly owned by a buffer_pool, its streams and its leases. The last owner
/// deletes it, on the context's thread while the context exists.
///
/// Each buffer has a reference count: one for the kernel while it may still fill the buffer (or for
/// the pool's free list), and one per lease of a part of it. At zero the buffer returns to the
/// kernel. All of this happens on the owner thread, except that leases may be returned on any
/// thread: another thread pushes the buffer onto `returned_` and posts this object to the context.
///
/// A stream whose request failed with -ENOBUFS has data waiting. It is queued in `waiting_streams_`
/// until the pool grants it a buffer: the stream then submits its request again, which completes
/// immediately. The pool makes as many grants as it has buffers. Such a stream can leave its buffer
/// unused (another reader took the data) or fail with -ENOBUFS again (another stream took the
/// buffer). So that the streams queued behind it do not wait for it, the pool checks again every
/// second turn of the loop while it has both free buffers and waiting streams.
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

    /// How urgently a stream needs a buffer.
    enum class buffer_demand : std::uint8_t {
        none,   ///< there may be no data for it
        some,   ///< its request failed with -ENOBUFS
        oldest, ///< its request failed with -ENOBUFS although it was granted a buffer
    };
    /// Ensures that a buffer is available. Returns 0, -errno, or 1 if `stream`, the node of a
    /// buffer_source, has to wait for one. `bytes`: a byte stream, whose data may be split
    /// anywhere.
    int prepare(event_loop& loop, bool bytes, queue_node& stream, buffer_demand how) noexcept;
    /// Removes a stream that no longer waits from the queue.
    void forget(queue_node& stream) noexcept { waiting_streams_.remove(stream); }
    /// Grants buffers to waiting streams as far as buffers are available.
    void grant_waiting() noexcept {
        if (ready_ > 0 && !waiting_streams_.empty()) [[unlikely]] {
            grant();
        }
    }
    /// A stream that was granted a buffer has received a completion. `round`: the value passed to
    /// grant().
    void on_completion(std::uint32_t round) noexcept {
        if (round == round_ && granted_ > 0) {
            --granted_;
        }
    }
    /// Whether streams share buffers.
    [[nodiscard]] bool is_incremental() const noexcept { return has_ring() && ring_.incremental(); }
    /// Whether the kernel selects buffers; otherwise each stream supplies its own.
    [[nodiscard]] bool has_ring() const noexcept { return static_cast<bool>(ring_); }
    [[nodiscard]] unsigned group() const noexcept { return ring_.group(); }
    /// Without a buffer ring: takes a buffer for one request. prepare() has ensured that there is
    /// one.
    [[nodiscard]] std::uint16_t take_free() noexcept;
    void put_free(std::uint16_t id) noexcept { drop(id); }
    /// The kernel has written `bytes` to the buffer; returns their offset. `last`: the kernel will
    /// not write to it again.
    [[nodiscard]] std::uint32_t filled(std::uint16_t id, std::uint32_t bytes, bool last) noexcept;
    [[nodiscard]] std::byte* address(std::uint16_t id) const noexcept {
        return chunks_[id >> chunk_shift_].get() + (id & (chunk_buffers_ - 1)) * buffer_size_;
    }

    /// May be called from any thread.
    void give_back(std::uint16_t id) noexcept;

    [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }
    [[nodiscard]] unsigned size() const noexcept { return count_; }
    [[nodiscard]] unsigned available() const noexcept { return ready_; }
    [[nodiscard]] bool is_scarce() const noexcept {
        return ready_ <= count_ / 4 && count_ + chunk_buffers_ > max_buffers_;
    }

    void ring_gone() noexcept override;

private:
    /// Owns the aligned memory of `chunk_buffers_` buffers.
    class chunk {
    public:
        explicit chunk(std::byte* memory) noexcept : memory_(memory) {}
        chunk(chunk&& other) noexcept : memory_(other.memory_) { other.memory_ = nullptr; }
        chunk& operator=(chunk&&) = delete;
        ~chunk();

        [[nodiscard]] explicit operator bool() const noexcept { return memory_ != nullptr; }
        [[nodiscard]] std::byte* get() const noexcept { return memory_; }

    private:
        std::byte* memory_;
    };

    struct buffer {
        std::atomic<std::uint32_t> references{0};
        std::uint32_t filled = 0;  // incremental ring: the offset at which the kernel continues
        std::uint16_t next = none; // in free_ or returned_
        bool with_kernel = false;  // it is in the ring
    };
    static constexpr std::uint16_t none = 0xffff;

    /// This node is in the inbox while the pool is due to check again.
    struct recheck_node : queue_node {
        buffer_pool_state* pool = nullptr;
        unsigned deliveries = 0; // remaining turns
    };

    void grant() noexcept;
    void post_recheck() noexcept;
    static void recheck(queue_node& node, event_loop& loop) noexcept;
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
    owned<buffer[]> buffers_; // capacity: max_buffers_
    unsigned count_ = 0;
    unsigned ready_ = 0;          // buffers in the ring, or in free_ if there is no ring
    std::uint16_t free_ = none;   // list of buffers that are not in the ring
    io_op_queue waiting_streams_; // streams waiting for a buffer
    unsigned granted_ = 0; // streams granted a buffer in this round whose completion is outstanding
    std::uint32_t round_ = 1; // never 0
    bool granting_ = false;
    bool recheck_pending_ = false;
    recheck_node recheck_;

    std::atomic<std::uint32_t> owners_{1};
    std::mutex mutex_; // protects the following members and writes of loop_
    std::uint16_t returned_ = none;
    bool posted_ = false;
};

} // namespace coil::detail
