// An await of the ring's: how it starts, is answered, cancelled and given up.

#include <coil/context/event_loop.hpp>
#include <coil/context/multishot.hpp>
#include <coil/context/wait.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace coil::detail {

namespace {

/// What is held back by others may be what ends them.
bool changes_others(const sqe_slot& entry) noexcept {
    if (entry.next != nullptr) {
        return false;
    }
    const auto call = static_cast<uring::opcode>(entry.request.opcode);
    return call == uring::opcode::async_cancel || call == uring::opcode::poll_remove;
}

} // namespace

/// It becomes a call that gives -EBADF, in its place in a chain, whatever it was.
void sqe_slot::refuse_descriptor() noexcept {
    constexpr unsigned of_the_call = uring::sqe_flag::fixed_file | uring::sqe_flag::buffer_select;
    const unsigned of_its_making = request.flags & ~of_the_call;
    request = uring::prep::close(-1);
    request.flags = static_cast<std::uint8_t>(of_its_making);
}

int sqe_slot::error_of(int error) const noexcept {
    constexpr int first_restart = 512; // ERESTARTSYS, which user space has no name for
    constexpr int last_restart = 516;
    const bool restarts = error <= -first_restart && error >= -last_restart;
    // No worker accepts: there it is a connection that came and went.
    const bool interrupted =
        error == -EINTR && request.opcode != static_cast<std::uint8_t>(uring::opcode::accept);
    return restarts || interrupted ? -ECANCELED : error;
}

bool io_op::link_timeout_expired() const noexcept {
    bool timed_out = false; // the entry before this one; what follows it is cancelled in turn
    for (const sqe_slot* entry = first_; entry != nullptr; entry = entry->next) {
        if (entry->is_limit) {
            continue;
        }
        const sqe_slot* const limit = entry->next;
        const bool expired = limit != nullptr && limit->is_limit && limit->result == -ETIME;
        timed_out = entry->result == -ECANCELED && (expired || timed_out);
    }
    return timed_out;
}

void io_op::start(event_loop& loop, std::coroutine_handle<> waiter, inplace_stop_token token,
                  sqe_slot& first, std::uint16_t entries, bool needs_every_result) noexcept {
    begin(loop, waiter);
    set_entries(first, entries);
    every_result_ = needs_every_result;
    if ((first.request.flags & uring::sqe_flag::io_drain) != 0) [[unlikely]] {
        // The loop keeps the order: the kernel refuses the flag on a ring that has ever used
        // CQE_SKIP_SUCCESS, and would wait for the loop's own read of its wake-up descriptor.
        first.request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::io_drain);
        make_exclusive();
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
    if (queued_ && !draining_ && changes_others(first)) [[unlikely]] {
        loop.submissions().bypass_queue(*this);
    }
    if (pending()) {
        observe<io_op>(token);
    }
}

/// What is to be submitted is answered without the kernel.
void io_op::answer_submission(int result) noexcept {
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->result = result;
        entry->completed = true;
    }
    completions_due_ = 0;
    on_submission_complete();
}

/// Ends a wait of which nothing is in the kernel's hands.
void io_op::fail(int error) noexcept {
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next) {
        entry->result = error;
        entry->completed = true;
    }
    completions_due_ = 0;
    finish();
    if (multishot_) [[unlikely]] {
        static_cast<multishot_source&>(*this).on_end();
    }
}

void io_op::on_completion(sqe_slot& entry) noexcept {
    entry.completed = true;
    if (one_completion_) {
        // The kernel says no more: what came before this entry succeeded, what follows in the
        // submission was cancelled.
        for (sqe_slot* later = entry.next_in_submission(); later != nullptr;
             later = later->next_in_submission()) {
            later->result = -ECANCELED;
            later->completed = true;
        }
        completions_due_ = 0;
    } else {
        --completions_due_;
    }
    if (completions_due_ == 0) {
        submission& submitted = loop().submissions();
        submitted.on_completed(entries_);
        if (draining_ || multishot_) [[unlikely]] {
            if (draining_) {
                submitted.on_exclusive_ended();
            } else {
                submitted.on_multishot_ended();
                if (cancels_due_ > 0) {
                    static_cast<multishot_source&>(*this).on_early_end();
                }
            }
        }
        if (entry.may_wake_spuriously && spurious_wakeup(entry)) [[unlikely]] {
            return;
        }
        if (entries_ > 1 || first_->next != nullptr) {
            on_submission_complete();
        } else {
            end_if_quiet();
        }
    }
}

/// Whether somebody was quicker than a poll_then_try_op, and it waits again.
bool io_op::spurious_wakeup(sqe_slot& entry) noexcept {
    if (entry.next != nullptr || entry.result < 0) {
        return false;
    }
    auto& taking = static_cast<poll_then_try_op&>(entry);
    entry.result = taking.take(taking);
    if (entry.result != -EAGAIN) {
        return false;
    }
    if (cancelling_) {
        entry.result = -ECANCELED;
        return false;
    }
    entry.completed = false;
    return start_rest(entry);
}

void io_op::on_part(sqe_slot& entry, const uring::cqe& completion) noexcept {
    if ((completion.flags & uring::cqe_flag::notif) != 0) {
        on_completion(entry); // its result came before
    } else if (multishot_) {
        static_cast<multishot_source&>(*this).on_result(completion);
    } else {
        entry.answer(completion);
    }
}

void io_op::cancel() noexcept {
    if (!pending() || cancelling_) {
        return;
    }
    cancelling_ = true;
    fast_path_ = false;
    if (queued_) {
        loop().submissions().dequeue(*this);
        fail(-ECANCELED);
        return;
    }
    loop().cancellations().request(*this);
}

bool io_op::cancel_here() noexcept {
    const bool here = pending() && (queued_ || entries_ > 1 || first_->next != nullptr);
    if (here) {
        cancel();
    }
    return here;
}

void io_op::on_cancel_answered(int answer) noexcept {
    --cancels_due_;
    cancel_missed_ = cancel_missed_ || answer < 0;
    if (completions_due_ == 0) {
        end_if_quiet();
    } else if (cancels_due_ == 0 && std::exchange(cancel_missed_, false)) {
        // Nothing was found to cancel, yet the wait is not over: the next entry of a chain is about
        // to start, or a worker thread cannot be interrupted. Ask again.
        loop().cancellations().retry_later(*this);
    }
}

void io_op::end_if_quiet() noexcept {
    if (cancels_due_ > 0) {
        return; // their completions carry this wait's address
    }
    if (retrying_) {
        loop().cancellations().forget(*this);
    }
    finish();
    if (multishot_) [[unlikely]] {
        static_cast<multishot_source&>(*this).on_end();
    }
}

void io_op::abandon() noexcept {
    if (!loop().on_owner_thread()) {
        std::fputs("coil: a suspended coroutine was destroyed on a thread other than its context's "
                   "while the kernel still works for it.\n",
                   stderr);
        std::abort();
    }
    stop_observing();
    cancel();
    loop().drain(*this);
}

} // namespace coil::detail
