#include <coil/context/detail/cancellation.hpp>
#include <coil/uring/prep.hpp>

namespace coil::detail {

namespace {

constexpr std::int64_t retry_ns = 1'000'000;

} // namespace

void cancellation::request(io_op& wait) noexcept {
    for (sqe_slot* entry = wait.first_; entry != nullptr; entry = entry->next_in_submission()) {
        if (io_op::is_settled(*entry)) {
            continue;
        }
        if (!ring_.reserve(1)) {
            if (wait.cancels_due_ == 0) {
                retry_later(wait);
            }
            return; // when the requests so far are answered in vain, it is requested again
        }
        uring::sqe* slot = ring_->acquire();
        *slot = uring::prep::cancel(user_data_of(entry, completion_kind::entry), 0);
        slot->user_data = user_data_of(&wait, completion_kind::cancel);
        ring_->commit(slot);
        ++wait.cancels_due_;
        ++metrics_.cancels;
    }
}

void cancellation::retry_later(io_op& wait) noexcept {
    if (wait.retrying_) {
        return;
    }
    if (retrying_.empty()) {
        retry_at_ns_ = ring_.now_ns() + retry_ns;
    }
    ++metrics_.cancel_retries;
    wait.retrying_ = true;
    retrying_.push(wait.node());
}

void cancellation::forget(io_op& wait) noexcept {
    wait.retrying_ = false;
    retrying_.remove(wait.node());
}

void cancellation::retry() noexcept {
    if (retrying_.empty() || ring_.now_ns() < retry_at_ns_) {
        return;
    }
    io_op_queue due; // those that fail again are queued behind these
    while (!retrying_.empty()) {
        due.push(retrying_.pop());
    }
    while (!due.empty()) {
        io_op& wait = io_op::from_node(due.pop());
        wait.retrying_ = false;
        request(wait);
    }
}

} // namespace coil::detail
