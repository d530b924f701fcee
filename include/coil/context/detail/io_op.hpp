#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/op_state.hpp>
#include <coil/context/detail/sqe_slot.hpp>
#include <coil/core/detail/linked_fifo.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/uring/abi.hpp>

#include <coroutine>
#include <cstdint>

namespace coil::detail {

/// An operation of the ring: one SQE, or a linked chain of them. It is a part of its awaiter, which
/// has the SQEs, and lives in the frame of the awaiting coroutine. Owner thread.
///
/// Its life, in the phases of op_state:
///
/// 1. start() takes the entries (`prepared`) and gives them to `submission`, which copies them to
///    the ring (`in_flight`) or holds them back (`queued`). start_at_once() is the fast path for a
///    single entry; without a stop token the operation is then `unobserved`.
/// 2. The CQE of an entry arrives: event_loop::route() finds the entry by the user_data,
///    completes it, and calls on_completion() (or complete_unobserved()).
/// 3. When all CQEs of the submission have arrived, the rest of the chain is submitted, if there
///    is one and it may run. Otherwise the operation completes: the coroutine becomes ready.
/// 4. cancel() removes a queued operation from the queue and completes it. For one in flight it
///    requests the cancellation of every entry (`cancelling`), and waits for the CQEs of the
///    entries and for those of the requests, whose user_data is the operation's address. A request
///    fails if the next entry of the chain was about to start, or if an io-wq worker cannot be
///    interrupted. If all requests were answered, one of them has failed, and the operation is not
///    over, the requests are made again later (`retrying`).
/// 5. The awaiter's destructor calls cancel_and_wait(), after which the kernel uses neither the
///    operation nor its memory (guarantee G2).
///
/// A zero-copy send posts two CQEs: the first has the result and F_MORE, the second says that the
/// buffer is free again. Only the second completes the entry. A multishot request posts any number;
/// the one without F_MORE completes it (see multishot_source).
///
/// In a chain every entry but the last carries CQE_SKIP_SUCCESS, so the kernel posts exactly one
/// CQE for the chain: the last entry's if all succeeded, otherwise that of the entry that failed
/// (the kernel then cancels the rest without CQEs). Chains that need every result, and kernels
/// without the flag, get one CQE for each entry.
///
/// A chain may take several submissions:
/// - The kernel continues a chain after some calls although they failed. Such a call ends its
///   submission; the rest is submitted when the call has succeeded. A command that the ring may
///   refuse ends its submission as well, because coil may have to make the system call instead.
/// - An io-wq worker that has executed one call continues with the next, and may block in it before
///   that call's timeout is armed. So a call with a timeout that follows one that a worker may
///   execute begins a submission of its own.
/// - A chain with a call that the kernel does not support is submitted entry by entry.
class io_op : public awaiter_base {
public:
    /// Requests cancellation. No effect when the operation is over or is being cancelled.
    void cancel() noexcept;

    /// For a request by the program to cancel the operation with this first_key(). If the kernel
    /// would not find all of it (it is queued, or is a chain), cancels it here and returns true.
    [[nodiscard]] bool cancel_here() noexcept;

    /// The user_data of the first entry.
    [[nodiscard]] std::uint64_t first_key() const noexcept {
        return user_data_of(first_, completion_kind::entry);
    }

    // For submission, cancellation and the routing of completions.

    [[nodiscard]] op_state& state() noexcept { return state_; }
    [[nodiscard]] const op_state& state() const noexcept { return state_; }
    /// The submission under way: its first entry, and their number.
    [[nodiscard]] sqe_slot* first() const noexcept { return first_; }
    [[nodiscard]] std::uint16_t entries() const noexcept { return entries_; }

    /// In a queue of operations: the pointer to the one ahead of this one.
    [[nodiscard]] static queue_node*& previous_in_queue(queue_node& node) noexcept {
        return from_node(node).previous_;
    }
    [[nodiscard]] static io_op& from_node(queue_node& node) noexcept {
        return static_cast<io_op&>(static_cast<ready_node&>(node));
    }

    /// The entry of an unobserved operation is completed. The caller makes the coroutine ready.
    void complete_unobserved() noexcept {
        COIL_ASSERT(state_.is(op_state::phase::unobserved) && first_->is_completed());
        state_.complete();
        finish_unobserved();
    }
    /// Called when the last CQE of an entry has arrived; the entry is completed.
    void on_completion(sqe_slot& entry) noexcept;
    /// Called for a CQE with F_MORE, and for the notification of a zero-copy send.
    void on_partial_completion(sqe_slot& entry, const uring::cqe& completion) noexcept;
    /// A request to cancel was submitted; its CQE will call on_cancel_completion().
    void on_cancel_submitted() noexcept { ++cancels_due_; }
    void on_cancel_completion(int result) noexcept;
    /// Whether CQEs of requests to cancel are outstanding.
    [[nodiscard]] bool has_cancels_due() const noexcept { return cancels_due_ > 0; }

    /// Called if the kernel lacks the opcode of an entry to submit: makes that system call instead.
    /// A chain is then submitted entry by entry. Returns what submission::submit() returns.
    bool submit_without_opcode() noexcept;
    /// Completes an operation of which the kernel has no entry.
    void fail(int error) noexcept;

protected:
    io_op() noexcept {} // NOLINT(*-member-init): previous_
    explicit io_op(op_state::kind kind) noexcept
        : state_(kind) {} // NOLINT(*-member-init): previous_
    ~io_op() {
        leave_if_under_way();
        COIL_ASSERT(state_.is(op_state::phase::idle) || state_.is(op_state::phase::completed));
    }

    /// For a derived class's destructor, while the entries exist: cancels what is in flight and
    /// returns when the kernel has finished with it.
    void cancel_and_wait() noexcept {
        if (pending()) [[unlikely]] {
            cancel_and_wait_pending();
        }
    }

    /// Starts a single entry if it can be submitted immediately. Returns false if nothing has
    /// happened and start() is needed.
    [[nodiscard]] bool start_at_once(event_loop& loop, std::coroutine_handle<> waiter,
                                     inplace_stop_token token, sqe_slot& entry) noexcept;

    /// Starts `first` and the entries that follow it. The caller suspends; finish() resumes it.
    void start(event_loop& loop, std::coroutine_handle<> waiter, inplace_stop_token token,
               sqe_slot& first, std::uint16_t entries, bool needs_every_result) noexcept;

    /// Sets the submission: `first` and the entries that follow it.
    void set_submission(sqe_slot& first, std::uint16_t entries) noexcept {
        first_ = &first;
        entries_ = entries;
        completions_due_ = entries;
        first.set_owner(*this);
    }

    /// After completion: whether the last call was cancelled because a link timeout of the chain
    /// has expired.
    [[nodiscard]] bool link_timeout_expired() const noexcept;

private:
    void arrange_submission() noexcept;
    void on_submission_complete() noexcept;
    [[nodiscard]] bool retry_after_spurious_wakeup(sqe_slot& entry) noexcept;
    [[nodiscard]] bool submit_rest(sqe_slot& rest) noexcept;
    void complete_submission(int result) noexcept;
    void complete() noexcept;
    void cancel_and_wait_pending() noexcept;

    queue_node* previous_; // valid while this is in the queue of a loop or of a buffer pool
    sqe_slot* first_ = nullptr;
    std::uint16_t entries_ = 0;
    std::uint16_t completions_due_ = 0; // CQEs that the entries will still post
    std::uint16_t cancels_due_ = 0;     // CQEs that requests to cancel will still post
    op_state state_{op_state::kind::plain};
};

/// Waiting operations, each of which can be removed in constant time.
using io_op_queue = linked_fifo<&io_op::previous_in_queue>;

} // namespace coil::detail
