#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/detail/sqe_slot.hpp>

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

    /// Submits an operation or holds it back. If the kernel's io_uring lacks its opcode, makes the
    /// system call instead. An operation that is being cancelled is not held back; then this
    /// returns false.
    bool submit(io_op& op) noexcept;
    /// The same for a single entry without special requirements, if it can be submitted
    /// immediately. `ring` is the constructor's argument again: loading the stored reference would
    /// slow down each operation.
    [[nodiscard]] bool submit_at_once(loop_ring& ring, sqe_slot& entry) noexcept;
    /// Takes an operation that is held back out of the queue and submits it, if the ring has space.
    void bypass_queue(io_op& op) noexcept;
    /// Removes an operation that was held back.
    void dequeue(io_op& op) noexcept;
    /// Submits what was held back, oldest first, as far as the limit and the queue allow.
    void admit_queued() noexcept;
    /// Completes with -ECANCELED all operations that are held back.
    void cancel_queued() noexcept;

    /// Called when the last completion of a submission of `entries` entries has arrived.
    void on_completed(std::uint32_t entries) noexcept {
        COIL_ASSERT(entries <= in_flight_);
        in_flight_ -= entries;
    }
    /// The same for a submission that has posted one completion for all of its entries.
    void on_chain_completed(std::uint32_t entries) noexcept {
        on_completed(entries);
        COIL_ASSERT(entries - 1 <= skipped_);
        skipped_ -= entries - 1;
    }
    void on_multishot_ended() noexcept {
        COIL_ASSERT(multishots_ > 0);
        --multishots_;
    }
    void on_exclusive_ended() noexcept {
        COIL_ASSERT(limit_ == 0);
        limit_ = max_in_flight_;
    }

    /// SQEs whose completion has not arrived, not counting the loop's own.
    [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }
    /// How many completions may come without a further submission. A multishot request posts any
    /// number. A zero-copy send counts once: its second completion follows when the peer has the
    /// data.
    [[nodiscard]] std::uint32_t completions_due() const noexcept {
        return multishots_ > 0 ? UINT32_MAX : in_flight_ - skipped_;
    }
    [[nodiscard]] bool has_queued() const noexcept { return !queued_.empty(); }
    /// Whether any operation will end by itself. Multishot requests do not count.
    [[nodiscard]] bool has_work() const noexcept {
        return in_flight_ > multishots_ || has_queued();
    }
    /// Whether something is held back only because the submission queue is full.
    [[nodiscard]] bool sq_starved() const noexcept {
        return has_queued() && within_limit(io_op::from_node(*queued_.front()));
    }
    /// The number of operations that have been held back so far.
    [[nodiscard]] std::uint64_t held_back() const noexcept { return held_back_; }

private:
    /// An exclusive operation, and a chain longer than the limit, are submitted when nothing else
    /// that ends by itself is in flight.
    [[nodiscard]] bool within_limit(const io_op& op) const noexcept {
        return in_flight_ == multishots_ ||
               (in_flight_ + op.entries() <= limit_ && !op.state().is_exclusive());
    }
    void push_entries(io_op& op) noexcept;

    loop_ring& ring_;
    std::uint32_t in_flight_ = 0;
    std::uint32_t limit_;          // of in_flight_: max_in_flight_, or 0 during an exclusive one
    std::uint32_t multishots_ = 0; // of in_flight_: requests that do not end by themselves
    std::uint32_t skipped_ = 0;    // of in_flight_: entries of chains that post no CQE
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
