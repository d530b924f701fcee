#include <coil/context/detail/submission.hpp>

#include <cerrno>

namespace coil::detail {

void submission::submit(io_op& wait) noexcept {
    for (sqe_slot* entry = wait.first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->look_up(ring_.tables().files_number());
        if (!ring_->supports(static_cast<uring::opcode>(entry->request.opcode))) [[unlikely]] {
            wait.submit_without_opcode();
            return;
        }
    }
    if (queued_.empty() && in_flight_ + wait.entries_ <= limit_ && !wait.draining_ &&
        ring_.reserve(wait.entries_)) [[likely]] {
        push_entries(wait);
        return;
    }
    ++held_back_;
    wait.queued_ = true;
    queued_.push(wait.node());
}

void submission::push_entries(io_op& wait) noexcept {
    for (sqe_slot* entry = wait.first_; entry != nullptr; entry = entry->next_in_submission()) {
        uring::sqe* slot = ring_->acquire();
        *slot = entry->request;
        slot->user_data = user_data_of(entry, completion_kind::entry);
        ring_->commit(slot);
    }
    in_flight_ += wait.entries_;
    if (wait.draining_) [[unlikely]] {
        limit_ = 0; // until on_exclusive_ended()
    } else if (wait.multishot_) [[unlikely]] {
        ++multishots_;
    }
}

void submission::admit_queued() noexcept {
    while (!queued_.empty()) {
        io_op& wait = io_op::from_node(*queued_.front());
        if (!within_limit(wait) || !ring_.reserve(wait.entries_)) {
            return;
        }
        dequeue(wait);
        push_entries(wait);
    }
}

void submission::cancel_queued() noexcept {
    while (!queued_.empty()) {
        io_op& wait = io_op::from_node(*queued_.front());
        dequeue(wait);
        wait.fail(-ECANCELED);
    }
}

void submission::bypass_queue(io_op& wait) noexcept {
    if (ring_.reserve(wait.entries_)) {
        dequeue(wait);
        --held_back_;
        push_entries(wait);
    }
}

void submission::dequeue(io_op& wait) noexcept {
    queued_.remove(wait.node());
    wait.queued_ = false;
}

} // namespace coil::detail
