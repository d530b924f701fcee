#pragma once

#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/wait.hpp>

#include <cstdint>

namespace coil::detail {

/// Submission with back-pressure: operations that do not fit into the submission queue, or exceed
/// max_in_flight, wait in a queue and are submitted in order. Owner thread.
///
/// An operation may be exclusive (io::drain): it is submitted when nothing else is in flight, and
/// nothing else is submitted before it has ended. A multishot request does not end by itself; for
/// these two rules it does not count.
class submission {
public:
    submission(loop_ring& ring, std::uint32_t max_in_flight) noexcept
        : ring_(ring), limit_(max_in_flight), max_in_flight_(max_in_flight) {}
    submission(const submission&) = delete;
    submission& operator=(const submission&) = delete;

    /// Submits an operation or holds it back. One with a call that the kernel lacks makes that call
    /// by itself.
    void submit(io_op& wait) noexcept;
    /// The same for one entry that needs nothing special, if it can be submitted at once. `ring` is
    /// the one that the constructor got: loading the reference would cost each operation.
    [[nodiscard]] bool submit_at_once(loop_ring& ring, sqe_slot& entry) noexcept;
    /// Submits a wait that was held back ahead of the others, if the queue has room.
    void bypass_queue(io_op& wait) noexcept;
    /// Removes a wait that was held back.
    void dequeue(io_op& wait) noexcept;
    /// Submits what was held back, oldest first, as far as the limit and the queue allow.
    void admit_queued() noexcept;
    /// Ends all that is held back with -ECANCELED.
    void cancel_queued() noexcept;

    /// The last completion of a submission of so many entries has come.
    void on_completed(std::uint32_t entries) noexcept { in_flight_ -= entries; }
    void on_multishot_ended() noexcept { --multishots_; }
    void on_exclusive_ended() noexcept { limit_ = max_in_flight_; }

    /// SQEs whose completion will come, without the loop's own.
    [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }
    [[nodiscard]] bool has_queued() const noexcept { return !queued_.empty(); }
    /// Whether anything will end by itself. A stream that no task waits for is no work.
    [[nodiscard]] bool has_work() const noexcept {
        return in_flight_ > multishots_ || has_queued();
    }
    /// Whether something is held back only because the submission queue is full.
    [[nodiscard]] bool sq_starved() const noexcept {
        return has_queued() && within_limit(io_op::from_node(*queued_.front()));
    }
    /// Operations that were held back so far.
    [[nodiscard]] std::uint64_t held_back() const noexcept { return held_back_; }

private:
    /// A chain longer than the limit is submitted when nothing else that ends by itself is in
    /// flight.
    [[nodiscard]] bool within_limit(const io_op& wait) const noexcept {
        return in_flight_ == multishots_ ||
               (in_flight_ + wait.entries_ <= limit_ && !wait.draining_);
    }
    void push_entries(io_op& wait) noexcept;

    loop_ring& ring_;
    std::uint32_t in_flight_ = 0;
    std::uint32_t limit_;          // of in_flight_: max_in_flight_, or 0 during an exclusive one
    std::uint32_t multishots_ = 0; // of in_flight_: requests that do not end by themselves
    const std::uint32_t max_in_flight_;
    io_op_queue queued_;
    std::uint64_t held_back_ = 0;
};

inline bool submission::submit_at_once(loop_ring& ring, sqe_slot& entry) noexcept {
    if (!queued_.empty() || in_flight_ >= limit_ ||
        !ring->supports(static_cast<uring::opcode>(entry.request.opcode))) [[unlikely]] {
        return false;
    }
    uring::sqe* const slot = ring->acquire();
    if (slot == nullptr) [[unlikely]] {
        return false;
    }
    *slot = entry.request;
    slot->user_data = user_data_of(&entry, completion_kind::entry);
    ring->commit(slot);
    ++in_flight_;
    return true;
}

} // namespace coil::detail
