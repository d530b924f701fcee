#include <coil/context/event_loop.hpp>
#include <coil/context/fallback.hpp>
#include <coil/context/multishot.hpp>
#include <coil/context/wait.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <sys/socket.h>

namespace coil::detail {

void end_without_context() noexcept {
    std::fputs(
        "coil: an await, or co_spawn(), spawn() or this_context(), outside of an io_context: "
        "this thread runs none. Run the coroutine with coil::run(task), or with "
        "io_context::co_spawn(task) and io_context::run().\n",
        stderr);
    std::abort();
}

void end_with_misuse(const char* sentence) noexcept {
    std::fprintf(stderr, "coil: %s\n", sentence);
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
    make_waiter_ready();
}

void wait_base::make_waiter_ready() noexcept {
    if (node().coroutine) {
        loop().make_ready(node(), node().coroutine);
    }
}

void wait_base::leave() noexcept {
    stop_observing();
    if (is(phase::done)) {
        loop().withdraw(node(), node().coroutine);
    }
    node().coroutine = nullptr;
    // Whoever joins next may be stopped, too.
    word_.store(word_.load(std::memory_order_relaxed) & ~(posted | delivered),
                std::memory_order_relaxed);
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
        make_waiter_ready();
    }
    return pending();
}

void wait_base::forget() noexcept {
    while (stop_is_coming()) {
        loop().deliver_inbox();
    }
    if (node().coroutine) {
        loop().withdraw(node(), node().coroutine);
    }
}

namespace {

/// A command to a socket that the ring may refuse, in which case the system call is made: see
/// io/socket_options.hpp. Commands are as old as futex_wait, Linux 6.7, which the probe tells.
bool may_be_refused(const ring_entry& entry, const uring::ring& ring) noexcept {
    return !ring.supports(uring::opcode::futex_wait) ||
           (entry.request.cmd_op == uring::socket_command::getsockopt &&
            entry.request.sockopt.level != SOL_SOCKET);
}

bool is_command(const ring_entry& entry) noexcept {
    return entry.request.opcode == static_cast<std::uint8_t>(uring::opcode::uring_cmd);
}

/// Whether the kernel leaves a chain alone when this call in the middle of it fails: it marks a
/// failure for most calls, but not for these.
bool failure_goes_unnoticed(const ring_entry& entry) noexcept {
    switch (static_cast<uring::opcode>(entry.request.opcode)) {
    case uring::opcode::shutdown:
    case uring::opcode::unlinkat:
    case uring::opcode::renameat:
    case uring::opcode::mkdirat:
    case uring::opcode::symlinkat:
    case uring::opcode::linkat:
    case uring::opcode::statx:
    case uring::opcode::fsync:
    case uring::opcode::sync_file_range:
    case uring::opcode::fallocate:
    case uring::opcode::ftruncate:
    case uring::opcode::madvise:
    case uring::opcode::getxattr:
    case uring::opcode::setxattr:
    case uring::opcode::fgetxattr:
    case uring::opcode::fsetxattr:
        return true;
    default:
        return false;
    }
}

bool is_limit(const ring_entry& entry) noexcept {
    return entry.request.opcode == static_cast<std::uint8_t>(uring::opcode::link_timeout);
}

/// What is held back by others may be what ends them.
bool changes_others(const ring_entry& entry) noexcept {
    if (entry.next != nullptr) {
        return false;
    }
    const auto call = static_cast<uring::opcode>(entry.request.opcode);
    return call == uring::opcode::async_cancel || call == uring::opcode::poll_remove;
}

} // namespace

void io_wait::start(event_loop& loop, std::coroutine_handle<> waiter, inplace_stop_token token,
                    ring_entry& first, std::uint16_t entries, bool needs_every_result) noexcept {
    begin(loop, waiter);
    first_ = &first;
    entries_ = entries;
    completions_due_ = entries;
    every_result_ = needs_every_result;
    first.owner = this;
    if ((first.request.flags & uring::sqe_flag::io_drain) != 0) [[unlikely]] {
        // The loop keeps the order: the kernel refuses the flag on a ring that has ever used
        // CQE_SKIP_SUCCESS, and would wait for the loop's own read of its wake-up descriptor.
        first.request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::io_drain);
        alone_ = true;
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
    loop.submit(*this);
    if (queued_ && !alone_ && changes_others(first)) [[unlikely]] {
        loop.let_pass(*this);
    }
    if (pending()) {
        observe<io_wait>(token);
    }
}

/// Finds out what of a chain is submitted now, from `first_` on, and which CQEs will answer.
void io_wait::arrange_submission() noexcept {
    std::uint16_t entries = 0;
    bool stops_here = false;
    for (ring_entry* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->owner = this;
        ++entries;
        const bool goes_on_anyway = (entry->request.flags & uring::sqe_flag::io_hardlink) != 0;
        const bool needs_a_look = failure_goes_unnoticed(*entry) ||
                                  (is_command(*entry) && may_be_refused(*entry, loop().ring())) ||
                                  one_by_one_;
        stops_here = stops_here || (needs_a_look && !goes_on_anyway);
        if (stops_here && entry->next != nullptr && !is_limit(*entry->next)) {
            entry->ends_submission = true;
            entry->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::io_link);
        }
    }
    entries_ = entries;
    one_completion_ = entries > 1 && !every_result_ && loop().skips_completions();
    completions_due_ = one_completion_ ? 1 : entries;
    if (!one_completion_) {
        return;
    }
    for (ring_entry* entry = first_; entry->next_in_submission() != nullptr;
         entry = entry->next_in_submission()) {
        entry->request.flags |= uring::sqe_flag::cqe_skip_success;
    }
}

/// The kernel lacks the opcode of one of the entries to submit: it is done by the system call, a
/// chain entry by entry.
void io_wait::submit_without_opcode() noexcept {
    const auto has_no_way = [this](const ring_entry& entry) {
        return !loop().ring().supports(static_cast<uring::opcode>(entry.request.opcode)) &&
               !can_perform_directly(entry.request);
    };
    if (first_->next != nullptr) {
        for (const ring_entry* entry = first_; entry != nullptr; entry = entry->next) {
            if (has_no_way(*entry)) {
                fail(-EOPNOTSUPP); // instead of doing a part
                return;
            }
        }
    }
    const ring_entry* const second = first_->next_in_submission();
    if (second == nullptr || (is_limit(*second) && second->next_in_submission() == nullptr)) {
        answer_submission(perform_directly(first_->request));
        return;
    }
    if (one_by_one_) {
        fail(-EOPNOTSUPP); // linked so that nothing can come between
        return;
    }
    one_by_one_ = true;
    for (ring_entry* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::cqe_skip_success);
    }
    arrange_submission();
    loop().submit(*this);
}

/// What is to be submitted is answered without the kernel.
void io_wait::answer_submission(int result) noexcept {
    for (ring_entry* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->result = result;
        entry->completed = true;
    }
    completions_due_ = 0;
    on_submission_complete();
}

/// Ends a wait of which nothing is in the kernel's hands.
void io_wait::fail(int error) noexcept {
    for (ring_entry* entry = first_; entry != nullptr; entry = entry->next) {
        entry->result = error;
        entry->completed = true;
    }
    completions_due_ = 0;
    finish();
    if (multishot_) [[unlikely]] {
        static_cast<multishot_source&>(*this).on_end();
    }
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
        if (alone_ || multishot_) [[unlikely]] {
            if (alone_) {
                loop().end_alone();
            } else {
                loop().left_multishot();
                if (cancels_due_ > 0) {
                    static_cast<multishot_source&>(*this).on_early_end();
                }
            }
        }
        if (entries_ > 1 || first_->next != nullptr) {
            on_submission_complete();
        } else {
            end_if_quiet();
        }
    }
}

void io_wait::on_part(ring_entry& entry, const uring::cqe& completion) noexcept {
    if ((completion.flags & uring::cqe_flag::notif) != 0) {
        on_completion(entry); // its result came before
    } else if (multishot_) {
        static_cast<multishot_source&>(*this).on_result(completion);
    } else {
        entry.result = completion.res;
        entry.flags = completion.flags;
    }
}

void io_wait::on_submission_complete() noexcept {
    ring_entry* call = first_; // the last that is not the time limit of one
    ring_entry* last = first_;
    while (ring_entry* const following = last->next_in_submission()) {
        last = following;
        call = is_limit(*last) ? call : last;
    }
    ring_entry* const rest = last->next;
    if (rest != nullptr && is_command(*call) && call->result == -EOPNOTSUPP && !cancelling_) {
        call->result = perform_directly(call->request);
    }
    if (rest != nullptr && call->result >= 0 && !cancelling_) {
        first_ = rest;
        arrange_submission();
        loop().submit(*this);
        return;
    }
    for (ring_entry* never = rest; never != nullptr; never = never->next) {
        never->result = -ECANCELED;
        never->completed = true;
    }
    end_if_quiet();
}

void io_wait::cancel() noexcept {
    if (!pending() || cancelling_) {
        return;
    }
    cancelling_ = true;
    plain_ = false;
    if (queued_) {
        loop().dequeue(*this);
        fail(-ECANCELED);
        return;
    }
    loop().request_cancel(*this);
}

bool io_wait::cancel_here() noexcept {
    const bool here = pending() && (queued_ || entries_ > 1 || first_->next != nullptr);
    if (here) {
        cancel();
    }
    return here;
}

void io_wait::on_cancel_answered(int answer) noexcept {
    --cancels_due_;
    cancel_missed_ = cancel_missed_ || answer < 0;
    if (completions_due_ == 0) {
        end_if_quiet();
    } else if (cancels_due_ == 0 && std::exchange(cancel_missed_, false)) {
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
    if (multishot_) [[unlikely]] {
        static_cast<multishot_source&>(*this).on_end();
    }
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
