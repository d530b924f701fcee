#pragma once

#include <coil/base/late.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/multishot_source.hpp>
#include <coil/context/detail/timer_wheel.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/io/detail/lease_owner.hpp>
#include <coil/io/detail/zcrx_source.hpp>
#include <coil/io/owned_descriptor.hpp>
#include <coil/uring/zcrx_area.hpp>
#include <coil/uring/zcrx_ring.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace coil {
struct zcrx_options;
} // namespace coil

namespace coil::detail {

/// Reads the eventfd that the kernel signals when a zcrx_state's ring has something to post.
class zcrx_events final : public multishot_source {
public:
    explicit zcrx_events(zcrx_state& state) noexcept : state_(state) {}
    ~zcrx_events() { close(); }

    void watch(event_loop& loop) noexcept {
        if (!is_active()) {
            keep_active(loop);
        }
    }
    void stop() noexcept { close(); }

private:
    int prepare(prepared_sqe& request) noexcept override;
    bool arrived(multishot_result& r) noexcept override;

    zcrx_state& state_;
    std::uint64_t count_ = 0; // the read's buffer
};

/// The state shared and jointly owned by a zcrx_queue, its streams and its leases. The last owner
/// deletes it. Its users are the queue and the streams: the last of these closes the ring, and with
/// it the hardware queue. Leases own only the memory.
///
/// The loop learns from an eventfd that the ring has something to post. It then enters the ring,
/// which posts all completions, and routes them to the streams. No stream's request outlives the
/// loop's run.
///
/// Everything happens on the owner thread, except that leases may be returned on any thread: they
/// go to the refill ring at once, under the mutex. Only if that ring is full, or if a stream waits
/// for memory, is the state posted to the loop.
class zcrx_state final : public ring_attachment, public lease_owner, queue_node {
public:
    /// Throws std::system_error.
    zcrx_state(event_loop& loop, const zcrx_options& options);
    zcrx_state(const zcrx_state&) = delete;
    zcrx_state& operator=(const zcrx_state&) = delete;
    ~zcrx_state();

    /// Owners: any thread.
    void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept;
    /// Users are owners as well.
    void add_user() noexcept {
        ++users_;
        retain();
    }
    void remove_user() noexcept;

    // For streams, on the owner thread.

    /// Returns -EBADF if the ring is closed, -EXDEV if it belongs to another loop, otherwise 0.
    [[nodiscard]] int check(const event_loop& loop) const noexcept;
    /// Submits the stream's request. Returns 0 or -errno.
    [[nodiscard]] int submit(zcrx_source& stream) noexcept;
    /// Requests the end of the stream's request.
    void stop(zcrx_source& stream) noexcept;
    /// Ends the requests of `stream`, or of all streams if it is null, and waits for the end.
    void finish(zcrx_source* stream) noexcept;
    void add(zcrx_source& stream) noexcept { stream.push_to(streams_); }

    /// The kernel has handed out a piece.
    void piece_received() noexcept { in_use_.fetch_add(1, std::memory_order_relaxed); }
    /// Called when a request has found the area exhausted. Returns false if no piece can be
    /// returned; otherwise on_piece_returned() will be called.
    [[nodiscard]] bool wait_for_a_piece() noexcept;
    [[nodiscard]] std::byte* address(std::uint64_t offset) const noexcept {
        return area_.data() + offset;
    }
    /// The number of pieces that a stream may hold before its request is stopped.
    [[nodiscard]] std::size_t most_queued() const noexcept { return most_queued_; }

    /// Any thread.
    void take_back(std::byte* data, std::uint32_t size) noexcept override;

    [[nodiscard]] std::size_t area_size() const noexcept { return area_.size(); }
    [[nodiscard]] std::size_t in_use() const noexcept {
        return in_use_.load(std::memory_order_relaxed);
    }

    void ring_gone() noexcept override;

private:
    friend class zcrx_events;

    /// Armed while returns wait for space in the refill ring.
    struct refill_timer : timer_call {
        explicit refill_timer(zcrx_state& s) noexcept : timer_call(&expire), state(s) {}
        static void expire(timer_node& node) noexcept;

        zcrx_state& state;
    };

    /// `result`: that of the read of the eventfd.
    void on_event(int result) noexcept;
    void drain() noexcept;
    void route() noexcept;
    void refuse_ready(int error) noexcept;
    void push_cancel(zcrx_source& stream) noexcept;
    [[nodiscard]] bool push(const uring::sqe& request, std::uint64_t key) noexcept;
    [[nodiscard]] bool has_requests(const zcrx_source* stream) const noexcept;
    void close_ring() noexcept;
    void give_back(std::byte* data, std::uint32_t size) noexcept;
    void refill() noexcept;
    void retry_streams() noexcept;
    static void take_delivery(queue_node& node, event_loop& loop) noexcept;

    uring::zcrx_area area_;
    late<uring::zcrx_ring> ring_;
    zcrx_events events_{*this};
    refill_timer refill_timer_{*this};
    zcrx_source* streams_ = nullptr; // those that have been awaited
    std::size_t most_queued_;
    io::owned_descriptor event_fd_;
    std::uint32_t id_ = 0; // of the registration
    unsigned users_ = 0;
    bool draining_ = false;

    std::atomic<std::uint32_t> owners_{0};
    std::atomic<std::size_t> in_use_{0}; // pieces in leases and in queues; decreased under mutex_
    std::atomic<event_loop*> loop_{nullptr}; // written under mutex_
    std::mutex mutex_;          // protects the returns to area_, and the following members
    bool lacks_memory_ = false; // a stream waits for a piece
    bool posted_ = false;
};

} // namespace coil::detail
