// The part of the event loop that talks to the ring: submission with back-pressure, completions,
// cancellation.

#include "event_loop_enter.hpp"

#include <coil/context/event_loop.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>

namespace coil::detail {

namespace {

constexpr std::int64_t cancel_retry_ns = 1'000'000;

std::uint64_t tagged(const void* object, completion_kind kind) noexcept {
    return reinterpret_cast<std::uintptr_t>(object) | static_cast<std::uint64_t>(kind);
}

io_wait& io_wait_of(queue_node& node) noexcept {
    return static_cast<io_wait&>(static_cast<ready_node&>(node));
}

} // namespace

void event_loop::submit(io_wait& wait) noexcept {
    for (ring_entry* entry = wait.first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->look_up(direct_table());
        if (!ring_->supports(static_cast<uring::opcode>(entry->request.opcode))) [[unlikely]] {
            wait.submit_without_opcode();
            return;
        }
    }
    if (queued_.empty() && in_flight_ + wait.entries_ <= limit_ && !wait.alone_ &&
        ring_.reserve(wait.entries_)) [[likely]] {
        push_entries(wait);
        return;
    }
    ++waited_;
    wait.queued_ = true;
    queued_.push(wait.node());
}

void event_loop::push_entries(io_wait& wait) noexcept {
    for (ring_entry* entry = wait.first_; entry != nullptr; entry = entry->next_in_submission()) {
        uring::sqe* slot = ring_->acquire();
        *slot = entry->request;
        slot->user_data = tagged(entry, completion_kind::entry);
        ring_->commit(slot);
    }
    in_flight_ += wait.entries_;
    if (wait.alone_ || wait.multishot_) [[unlikely]] {
        if (wait.alone_) {
            limit_ = 0; // until it is over: see end_alone()
        } else {
            ++multishots_;
        }
    }
}

/// Whether the bound lets it go. A chain longer than the bound goes when nothing else that ends by
/// itself is in flight.
bool event_loop::may_fly(const io_wait& wait) const noexcept {
    return in_flight_ == multishots_ || (in_flight_ + wait.entries_ <= limit_ && !wait.alone_);
}

/// Whether something is held back only because the queue is full.
bool event_loop::lacks_room() const noexcept {
    return !queued_.empty() && may_fly(io_wait_of(*queued_.front()));
}

/// Submits what was held back, oldest first, as far as there is room.
void event_loop::admit_queued() noexcept {
    while (!queued_.empty()) {
        auto& wait = io_wait_of(*queued_.front());
        if (!may_fly(wait) || !ring_.reserve(wait.entries_)) {
            return;
        }
        queued_.pop();
        wait.queued_ = false;
        push_entries(wait);
    }
}

/// All at once: one by one, each would be searched for.
void event_loop::cancel_queued() noexcept {
    while (!queued_.empty()) {
        auto& wait = io_wait_of(queued_.pop());
        wait.queued_ = false;
        wait.fail(-ECANCELED);
    }
}

void event_loop::let_pass(io_wait& wait) noexcept {
    if (ring_.reserve(wait.entries_)) {
        dequeue(wait);
        --waited_;
        push_entries(wait);
    }
}

void event_loop::dequeue(io_wait& wait) noexcept {
    queued_.remove(wait.node());
    wait.queued_ = false;
}

void event_loop::request_cancel(io_wait& wait) noexcept {
    for (ring_entry* entry = wait.first_; entry != nullptr; entry = entry->next_in_submission()) {
        if (io_wait::is_settled(*entry)) {
            continue;
        }
        if (!ring_.reserve(1)) {
            if (wait.cancels_due_ == 0) {
                retry_cancel_later(wait);
            }
            return; // when the requests so far are answered in vain, it is asked again
        }
        uring::sqe* slot = ring_->acquire();
        *slot = uring::prep::cancel(tagged(entry, completion_kind::entry), 0);
        slot->user_data = tagged(&wait, completion_kind::cancel);
        ring_->commit(slot);
        ++wait.cancels_due_;
        ++metrics_.cancels;
    }
}

void event_loop::retry_cancel_later(io_wait& wait) noexcept {
    if (wait.retrying_) {
        return;
    }
    if (retrying_.empty()) {
        retry_at_ns_ = now_ns() + cancel_retry_ns;
    }
    ++metrics_.cancel_retries;
    wait.retrying_ = true;
    retrying_.push(wait.node());
}

void event_loop::forget_retry(io_wait& wait) noexcept {
    wait.retrying_ = false;
    retrying_.remove(wait.node());
}

void event_loop::retry_cancels() noexcept {
    if (retrying_.empty() || now_ns() < retry_at_ns_) {
        return;
    }
    io_wait_queue due;
    while (!retrying_.empty()) {
        due.push(retrying_.pop());
    }
    while (!due.empty()) {
        auto& wait = io_wait_of(due.pop());
        wait.retrying_ = false;
        request_cancel(wait);
    }
}

void event_loop::drain(const io_wait& wait) noexcept {
    while (wait.pending()) {
        const uring::timespec soon{0, 1'000'000};
        ring_.enter(1, &soon, 0);
        reap();
        retry_cancels();
    }
}

} // namespace coil::detail
