#include <coil/context/detail/cancellation.hpp>
#include <coil/uring/prep.hpp>

namespace coil::detail {

namespace {

constexpr std::int64_t retry_ns = 1'000'000;

} // namespace

void cancellation::request(io_op& op) noexcept {
    COIL_ASSERT(op.state().is(op_state::phase::cancelling));
    for (sqe_slot* entry = op.first(); entry != nullptr; entry = entry->next_in_submission()) {
        if (entry->has_result()) {
            continue;
        }
        if (!ring_.reserve(1)) {
            if (!op.has_cancels_due()) {
                retry_later(op);
            }
            return; // the results of the submitted requests decide whether to retry
        }
        uring::sqe* slot = ring_->acquire();
        *slot = uring::prep::cancel(user_data_of(entry, completion_kind::entry), 0);
        slot->user_data = user_data_of(&op, completion_kind::cancel);
        ring_->commit(slot);
        op.on_cancel_submitted();
        ++metrics_.cancels;
    }
}

void cancellation::retry_later(io_op& op) noexcept {
    if (op.state().is(op_state::phase::retrying)) {
        return;
    }
    if (retrying_.empty()) {
        retry_at_ns_ = ring_.now_ns() + retry_ns;
    }
    ++metrics_.cancel_retries;
    op.state().retry_cancel_later();
    retrying_.push(op.node());
}

void cancellation::forget(io_op& op) noexcept {
    op.state().leave_retries();
    retrying_.remove(op.node());
}

void cancellation::retry() noexcept {
    if (retrying_.empty() || ring_.now_ns() < retry_at_ns_) {
        return;
    }
    io_op_queue due; // request() may put an operation back into retrying_
    while (!retrying_.empty()) {
        due.push(retrying_.pop());
    }
    while (!due.empty()) {
        io_op& op = io_op::from_node(due.pop());
        op.state().leave_retries();
        request(op);
    }
}

} // namespace coil::detail
