#include <coil/context/detail/submission.hpp>

#include <cerrno>

namespace coil::detail {

bool submission::submit(io_op& op) noexcept {
    for (sqe_slot* entry = op.first(); entry != nullptr; entry = entry->next_in_submission()) {
        if (!ring_->supports(static_cast<uring::opcode>(entry->request.opcode))) [[unlikely]] {
            return op.submit_without_opcode();
        }
    }
    if (queued_.empty() && in_flight_ + op.entries() <= limit_ && !op.state().is_exclusive() &&
        ring_.reserve(op.entries())) [[likely]] {
        push_entries(op);
        return true;
    }
    if (op.state().is_cancelling()) {
        return false;
    }
    ++held_back_;
    op.state().hold_back();
    queued_.push(op.node());
    return true;
}

void submission::push_entries(io_op& op) noexcept {
    op.state().submit();
    for (sqe_slot* entry = op.first(); entry != nullptr; entry = entry->next_in_submission()) {
        uring::sqe* slot = ring_->acquire();
        *slot = entry->request;
        slot->user_data = user_data_of(entry, completion_kind::entry);
        slot->pad2 = 0;
        ring_->commit(slot);
    }
    in_flight_ += op.entries();
    if (op.state().posts_one_cqe()) {
        skipped_ += op.entries() - 1U;
    }
    if (op.state().is_exclusive()) [[unlikely]] {
        limit_ = 0; // until on_exclusive_ended()
    } else if (op.state().is_multishot()) [[unlikely]] {
        ++multishots_;
    }
}

void submission::admit_queued() noexcept {
    while (!queued_.empty()) {
        io_op& op = io_op::from_node(*queued_.front());
        if (!within_limit(op) || !ring_.reserve(op.entries())) {
            return;
        }
        dequeue(op);
        push_entries(op);
    }
}

void submission::cancel_queued() noexcept {
    while (!queued_.empty()) {
        io_op& op = io_op::from_node(*queued_.front());
        dequeue(op);
        op.fail(-ECANCELED);
    }
}

void submission::bypass_queue(io_op& op) noexcept {
    if (ring_.reserve(op.entries())) {
        dequeue(op);
        --held_back_;
        push_entries(op);
    }
}

void submission::dequeue(io_op& op) noexcept {
    op.state().dequeue();
    queued_.remove(op.node());
}

} // namespace coil::detail
