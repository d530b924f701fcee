// An operation: its start, its completion, its cancellation. The rest of a chain: chain.cpp.

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/multishot_source.hpp>
#include <coil/uring/abi.hpp>

#include <cerrno>

namespace coil::detail {

namespace {

/// Whether operations in flight may need this one in order to complete.
bool ends_others(const sqe_slot& entry) noexcept {
    if (entry.next() != nullptr) {
        return false;
    }
    const auto call = static_cast<uring::opcode>(entry.request.opcode);
    return call == uring::opcode::async_cancel || call == uring::opcode::poll_remove;
}

/// Whether a link timeout's result says that it has expired and cancelled its operation: -ETIME, or
/// the number of cancelled operations if they waited for a futex or a child.
bool limit_expired(int result) noexcept { return result == -ETIME || result > 0; }

} // namespace

bool io_op::link_timeout_expired() const noexcept {
    // Whether the previous entry has timed out; the kernel then cancels the next ones too.
    bool timed_out = false;
    for (const sqe_slot* entry = first_; entry != nullptr; entry = entry->next()) {
        if (entry->is_limit()) {
            continue;
        }
        const sqe_slot* const limit = entry->next();
        const bool expired = limit != nullptr && limit->is_limit() && limit_expired(limit->result);
        timed_out = entry->result == -ECANCELED && (expired || timed_out);
    }
    return timed_out;
}

void io_op::start(event_loop& loop, std::coroutine_handle<> waiter, inplace_stop_token token,
                  sqe_slot& first, std::uint16_t entries, bool needs_every_result) noexcept {
    COIL_ASSERT(loop.on_owner_thread());
    begin(loop, waiter, wait_kind::operation);
    state_.start(needs_every_result);
    for (sqe_slot* entry = &first; entry != nullptr; entry = entry->next()) {
        entry->check_files_table(loop.direct_table());
    }
    set_submission(first, entries);
#if COIL_ASSERTIONS
    loop.descriptors().begin(*this);
#endif
    if ((first.request.flags & uring::sqe_flag::io_drain) != 0) [[unlikely]] {
        // The loop itself keeps the order: the kernel refuses the flag on a ring that has ever used
        // CQE_SKIP_SUCCESS, and would wait for the loop's own read of its wake-up descriptor.
        first.request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::io_drain);
        state_.make_exclusive();
    }
    if (token.stop_requested()) {
        fail(-ECANCELED);
        return;
    }
    if (entries > 1) {
        if (entries > loop.ring().sq_entries()) {
            fail(-E2BIG); // a chain's entries are acquired together
            return;
        }
        arrange_submission();
    }
    loop.submissions().submit(*this);
    if (state_.is(op_state::phase::queued) && !state_.is_exclusive() && ends_others(first))
        [[unlikely]] {
        loop.submissions().bypass_queue(*this);
    }
    if (pending()) {
        observe<io_op>(token);
    }
}

/// Completes the entries of the submission without the kernel.
void io_op::complete_submission(int result) noexcept {
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->complete(result);
    }
    completions_due_ = 0;
    on_submission_complete();
}

void io_op::fail(int error) noexcept {
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next()) {
        entry->complete(error);
    }
    completions_due_ = 0;
    complete();
}

void io_op::on_completion(sqe_slot& entry) noexcept {
    COIL_ASSERT(entry.is_completed() && completions_due_ > 0);
    COIL_ASSERT(state_.is_submitted() && loop().on_owner_thread());
    if (state_.posts_one_cqe()) {
        // This is the only CQE of the submission: the entries ahead of this one have succeeded,
        // those behind it were cancelled.
        for (sqe_slot* later = entry.next_in_submission(); later != nullptr;
             later = later->next_in_submission()) {
            later->complete(-ECANCELED);
        }
        completions_due_ = 0;
    } else {
        --completions_due_;
    }
    if (completions_due_ > 0) {
        return;
    }
    submission& submissions = loop().submissions();
    if (state_.posts_one_cqe()) {
        submissions.on_chain_completed(entries_);
    } else {
        submissions.on_completed(entries_);
    }
    if (state_.is_exclusive_or_multishot()) [[unlikely]] {
        if (state_.is_exclusive()) {
            submissions.on_exclusive_ended();
        } else {
            submissions.on_multishot_ended();
            if (cancels_due_ > 0) {
                static_cast<multishot_source&>(*this).on_early_end();
            }
        }
    }
    if (entry.may_wake_spuriously() && retry_after_spurious_wakeup(entry)) [[unlikely]] {
        return;
    }
    if (entries_ > 1 || first_->next() != nullptr) {
        on_submission_complete();
    } else {
        complete();
    }
}

/// Takes the result of a poll_then_try_op. Returns true if there was none, and the operation waits
/// again.
bool io_op::retry_after_spurious_wakeup(sqe_slot& entry) noexcept {
    if (entry.next() != nullptr || entry.result < 0) {
        return false;
    }
    auto& op = static_cast<poll_then_try_op&>(entry);
    entry.result = op.take(op);
    if (entry.result != -EAGAIN) {
        return false;
    }
    if (state_.is_cancelling()) {
        entry.result = -ECANCELED;
        return false;
    }
    entry.reset();
    return submit_rest(entry);
}

void io_op::on_partial_completion(sqe_slot& entry, const uring::cqe& completion) noexcept {
    if ((completion.flags & uring::cqe_flag::notif) != 0) {
        entry.complete(); // the result came with the previous CQE
        on_completion(entry);
    } else if (state_.is_multishot()) {
        static_cast<multishot_source&>(*this).on_result(completion);
    } else {
        entry.store_result(completion);
    }
}

void io_op::cancel() noexcept {
    if (!pending() || state_.is_cancelling()) {
        return;
    }
    COIL_ASSERT(loop().on_owner_thread());
    if (state_.is(op_state::phase::queued)) {
        loop().submissions().dequeue(*this);
        fail(-ECANCELED);
        return;
    }
    state_.request_cancel();
    loop().cancellations().request(*this);
}

bool io_op::cancel_here() noexcept {
    const bool here = pending() && (state_.is(op_state::phase::queued) || entries_ > 1 ||
                                    first_->next() != nullptr);
    if (here) {
        cancel();
    }
    return here;
}

void io_op::on_cancel_completion(int result) noexcept {
    COIL_ASSERT(cancels_due_ > 0 && loop().on_owner_thread());
    --cancels_due_;
    if (result < 0) {
        state_.miss_cancel();
    }
    if (completions_due_ == 0) {
        complete();
    } else if (cancels_due_ == 0 && state_.has_missed_cancel()) {
        loop().cancellations().retry_later(*this);
    }
}

/// Completes the operation, unless CQEs of requests to cancel are outstanding; then the last of
/// these completes it.
void io_op::complete() noexcept {
    COIL_ASSERT(completions_due_ == 0);
    if (cancels_due_ > 0) {
        return; // their user_data is the address of this operation
    }
    if (state_.is(op_state::phase::retrying)) {
        loop().cancellations().forget(*this);
    }
#if COIL_ASSERTIONS
    loop().descriptors().end(*this);
#endif
    state_.complete();
    finish();
    if (state_.is_multishot()) [[unlikely]] {
        static_cast<multishot_source&>(*this).on_end();
    }
}

void io_op::cancel_and_wait_pending() noexcept {
    if (!loop().on_owner_thread()) {
        end_with_misuse("a suspended coroutine was destroyed on a thread other than its context's "
                        "while the kernel still works for it.");
    }
    stop_observing();
    cancel();
    loop().drain(*this);
}

} // namespace coil::detail
