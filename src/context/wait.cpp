#include <coil/context/event_loop.hpp>
#include <coil/context/wait.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace coil::detail {

void end_without_context() noexcept {
    std::fputs("coil: co_await of an operation outside of an io_context. Run the coroutine with "
               "coil::run(task) or io_context::co_spawn(task) and io_context::run().\n",
               stderr);
    std::abort();
}

void wait_base::finish() noexcept {
    if (attached()) [[unlikely]] {
        detach();
        if (stop_is_coming()) {
            enter(phase::done);
            return; // the delivery makes it ready
        }
    }
    enter(phase::done);
    loop().make_ready(node(), node().coroutine);
}

void wait_base::stop_observing() noexcept {
    detach();
    while (stop_is_coming()) {
        loop().deliver_inbox(); // the post is there, or a few instructions away
    }
}

void wait_base::post_stop() noexcept {
    event_loop& owner = loop();
    word_.fetch_or(posted, std::memory_order_relaxed); // detach() makes it visible to the owner
    owner.post(static_cast<stop_callback_base&>(*this));
}

bool wait_base::stop_delivered() noexcept {
    word_.fetch_or(delivered, std::memory_order_relaxed);
    if (is(phase::done)) {
        loop().make_ready(node(), node().coroutine);
    }
    return pending();
}

void wait_base::forget() noexcept {
    while (stop_is_coming()) {
        loop().deliver_inbox();
    }
    loop().withdraw(node(), node().coroutine);
}

void io_wait::start(event_loop& loop, std::coroutine_handle<> waiter, inplace_stop_token token,
                    ring_entry& first, std::uint16_t entries, bool needs_every_result) noexcept {
    begin(loop, waiter);
    first_ = &first;
    entries_ = entries;
    one_completion_ = entries > 1 && !needs_every_result && loop.skips_completions();
    completions_due_ = one_completion_ ? 1 : entries;
    for (ring_entry* entry = &first; entry != nullptr; entry = entry->next) {
        entry->owner = this;
        if (one_completion_ && entry->next != nullptr) {
            entry->request.flags |= uring::sqe_flag::cqe_skip_success;
        }
    }
    if (token.stop_requested()) {
        fail(-ECANCELED);
        return;
    }
    loop.submit(*this);
    if (pending()) {
        observe<io_wait>(token);
    }
}

/// Ends a wait of which nothing is in the kernel's hands.
void io_wait::fail(int error) noexcept {
    for (ring_entry* entry = first_; entry != nullptr; entry = entry->next) {
        entry->result = error;
        entry->completed = true;
    }
    completions_due_ = 0;
    finish();
}

void io_wait::on_completion(ring_entry& entry) noexcept {
    entry.completed = true;
    if (one_completion_) {
        // The kernel says no more: what came before this entry succeeded, what follows was
        // cancelled.
        for (ring_entry* later = entry.next; later != nullptr; later = later->next) {
            later->result = -ECANCELED;
            later->completed = true;
        }
        completions_due_ = 0;
    } else {
        --completions_due_;
    }
    if (completions_due_ == 0) {
        loop().left_flight(entries_);
        end_if_quiet();
    }
}

void io_wait::cancel() noexcept {
    if (!pending() || cancelling_) {
        return;
    }
    cancelling_ = true;
    if (queued_) {
        loop().dequeue(*this);
        fail(-ECANCELED);
        return;
    }
    loop().request_cancel(*this);
}

void io_wait::on_cancel_answered(int answer) noexcept {
    --cancels_due_;
    if (completions_due_ == 0) {
        end_if_quiet();
    } else if (cancels_due_ == 0 && answer < 0) {
        // Nothing was found to cancel, yet the wait is not over: the next entry of a chain is about
        // to start, or a worker thread cannot be interrupted. Ask again.
        loop().retry_cancel_later(*this);
    }
}

void io_wait::end_if_quiet() noexcept {
    if (cancels_due_ > 0) {
        return; // their completions carry this wait's address
    }
    if (retrying_) {
        loop().forget_retry(*this);
    }
    finish();
}

void io_wait::abandon() noexcept {
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
