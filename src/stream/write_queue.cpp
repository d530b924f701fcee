#include <coil/base/assert.hpp>
#include <coil/stream/detail/write_queue.hpp>

#include <cerrno>
#include <cstring>

namespace coil::detail {

queued_write::queued_write(write_queue& queue, std::span<const const_buffer> message) noexcept
    : queue_(&queue), message_(message) {
    link_.call = this;
    for (const const_buffer& part : message) {
        size_ += part.size();
    }
}

queued_write::~queued_write() {
    if (pending()) [[unlikely]] {
        stop_observing(); // may call cancel()
    }
    if (state_ == state::waiting) [[unlikely]] {
        queue_->remove(*this);
        queue_->accept();
    } else if (state_ == state::leading) [[unlikely]] {
        // The number of bytes that a write in flight takes is unknown.
        COIL_ASSERT(!queue_->is_torn_); // no call leads then
        queue_->is_torn_ = queue_->in_flight_;
        queue_->pass_lead();
    }
    leave_if_under_way();
}

bool queued_write::enter(event_loop& loop, std::coroutine_handle<> waiter,
                         inplace_stop_token token) noexcept {
    write_queue& queue = *queue_;
    if (queue.leader_ != nullptr && queue.loop_ != &loop) [[unlikely]] {
        end_with_misuse("a shared_writer is used on a context while another one uses it.");
    }
    if (token.stop_requested() || queue.is_torn_ || size_ > max_transfer) [[unlikely]] {
        complete(token.stop_requested() ? -ECANCELED : queue.is_torn_ ? -EPIPE : -EMSGSIZE);
        return false;
    }
    queue.loop_ = &loop;
    queue.arrive(*this);
    if (state_ != state::waiting) {
        return false;
    }
    has_waited_ = true;
    describe<sizeof(described_wait)>(waited_object::shared_writer);
    begin(loop, waiter, wait_kind::sync);
    observe<queued_write>(token);
    return true;
}

bool queued_write::await_resume() noexcept {
    if (has_waited_) {
        resumed();
    }
    return leads() && !has_waited_;
}

void queued_write::cancel() noexcept {
    if (pending() && state_ == state::waiting) {
        queue_->remove(*this);
        complete(-ECANCELED);
        queue_->accept();
    }
}

void queued_write::complete(int result) noexcept {
    result_ = result;
    state_ = state::done;
    if (pending()) {
        finish();
    }
}

void queued_write::resign(int result) noexcept {
    complete(result);
    queue_->pass_lead();
}

const_buffer queued_write::next_piece() noexcept {
    write_queue& queue = *queue_;
    COIL_ASSERT(leads() && !queue.in_flight_);
    if (!is_accepted() && queue.pending() == 0) {
        COIL_ASSERT(size_ > queue.capacity_);
        queue.direct_left_ = size_;
        end_ = queue.written_ + size_;
        queue.accept(); // the calls behind this one
    }
    queue.in_flight_ = true;
    if (queue.direct_left_ == 0) {
        return {queue.memory_.get() + queue.begin_, queue.pending()};
    }
    std::size_t before = size_ - queue.direct_left_;
    const const_buffer* part = message_.data();
    for (; before >= part->size(); ++part) {
        before -= part->size();
    }
    return part->drop(before);
}

void queued_write::wrote(int result) noexcept {
    write_queue& queue = *queue_;
    COIL_ASSERT(leads() && queue.in_flight_);
    queue.in_flight_ = false;
    if (result <= 0) {
        const int outcome = is_written() ? size() : result == 0 ? -EIO : result;
        queue.is_torn_ = queue.direct_left_ > 0 && queue.direct_left_ < size_;
        // The calls behind this one have counted its message: their positions include it. If
        // nothing of it was written, they do not miss it.
        queue.written_ += queue.direct_left_;
        queue.direct_left_ = 0;
        resign(outcome);
        return;
    }
    queue.advance(static_cast<std::size_t>(result));
    queue.accept();
    // What remains in the buffer belongs to calls that wait, or to calls that were cancelled.
    if (is_written() && (queue.pending() == 0 || !queue.no_call_waits())) {
        resign(size());
    }
}

write_queue::~write_queue() {
    if (leader_ != nullptr) [[unlikely]] {
        end_with_destroyed(this, "a shared_writer is destroyed while a coroutine writes to it. It "
                                 "must outlive its calls.");
    }
}

void write_queue::arrive(queued_write& call) noexcept {
    if (leader_ == nullptr) {
        leader_ = &call;
        call.state_ = queued_write::state::leading;
    } else {
        call.state_ = queued_write::state::waiting;
        waiting_.push(call.link_);
    }
    accept();
    if (call.leads() && call.is_written()) { // an empty message, and nothing before it
        call.resign(0);
    }
}

void write_queue::remove(queued_write& call) noexcept {
    (call.is_accepted() ? accepted_ : waiting_).remove(call.link_);
}

void write_queue::accept() noexcept {
    if (leader_ != nullptr && !leader_->is_accepted() && !take(*leader_)) {
        return;
    }
    while (!waiting_.empty() && take(front(waiting_))) {
        queued_write& call = *static_cast<queued_write::queue_link&>(waiting_.pop()).call;
        if (call.is_written()) {
            call.complete(call.size());
        } else {
            accepted_.push(call.link_);
        }
    }
}

bool write_queue::take(queued_write& call) noexcept {
    if (call.size_ > capacity_ - end_) {
        return false;
    }
    for (const const_buffer& part : call.message_) {
        if (part.size() > 0) {
            std::memcpy(memory_.get() + end_, part.data(), part.size());
            end_ += part.size();
        }
    }
    call.end_ = written_ + direct_left_ + pending();
    return true;
}

void write_queue::advance(std::size_t bytes) noexcept {
    COIL_ASSERT(bytes <= (direct_left_ > 0 ? direct_left_ : pending()));
    written_ += bytes;
    if (direct_left_ > 0) {
        direct_left_ -= bytes;
    } else {
        begin_ += bytes;
        // Moves the rest to the front if that is no longer than what was written since the last
        // move: all moves together then cost no more than the copies into the buffer.
        if (begin_ >= pending()) {
            std::memcpy(memory_.get(), memory_.get() + begin_, pending());
            end_ = pending();
            begin_ = 0;
        }
    }
    complete_written();
}

void write_queue::complete_written() noexcept {
    while (!accepted_.empty() && front(accepted_).is_written()) {
        queued_write& call = *static_cast<queued_write::queue_link&>(accepted_.pop()).call;
        call.complete(call.size());
    }
}

void write_queue::pass_lead() noexcept {
    leader_ = nullptr;
    if (is_torn_) [[unlikely]] {
        for (calls* const list : {&accepted_, &waiting_}) {
            while (!list->empty()) {
                static_cast<queued_write::queue_link&>(list->pop()).call->complete(-EPIPE);
            }
        }
        return;
    }
    complete_written(); // behind a message that was given up
    accept();           // behind a call that waited for room
    calls& next = accepted_.empty() ? waiting_ : accepted_;
    if (!next.empty()) {
        queued_write& call = *static_cast<queued_write::queue_link&>(next.pop()).call;
        leader_ = &call;
        call.state_ = queued_write::state::leading;
        call.finish();
    }
}

} // namespace coil::detail
