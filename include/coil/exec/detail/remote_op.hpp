#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/exchange.hpp>
#include <coil/context/detail/away_list.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/handoff.hpp>
#include <coil/exec/detail/resume_target.hpp>
#include <coil/exec/detail/work.hpp>

#include <coroutine>

namespace coil::detail {

// ---- roots
// A root on a context's thread is in that context's list, so that a shutdown finds it. A root that
// runs elsewhere is unowned: in no list, and destroyed only when it ends.

/// Removes a root from its context's list; called on the thread that runs the root. No effect on a
/// thread without a context: there the root is usually in no list, or, if code unknown to coil has
/// resumed its coroutine, still in the list of its context.
inline void set_unowned(promise_base& root) noexcept {
    if (current_loop != nullptr && !is_unowned(root)) {
        event_loop::disown(root);
    }
}

/// The root that moves to another executor together with `nearest`: the top-level task of its tree,
/// even if `nearest` is a combinator's child, which is bound to that task. Null if the top-level
/// task is not known or, like a run_loop's task, may not move.
[[nodiscard]] inline promise_base* movable_above(promise_base* nearest) noexcept {
    promise_base* const root = top_level_of(nearest);
    return root != nullptr && !root->owner().bound ? root : nullptr;
}

/// Queues a coroutine on a context, on the context's thread. If its root is unowned, the context
/// adopts it.
inline void settle_in(event_loop& loop, promise_base* root, queue_node& node,
                      std::coroutine_handle<> coroutine) noexcept {
    loop.adopt_remote(root != nullptr && is_unowned(*root) ? root : nullptr, node, coroutine);
}

class remote_op;

/// Exists while an await_suspend submits its own op to an executor. If the executor runs or drops
/// the op inside submit(), has_arrived() is true: await_suspend then returns false instead of
/// resuming the coroutine, so that the stack does not grow (guarantee G10). If has_arrived() is
/// false afterwards, the op may already be destroyed.
class submit_scope {
public:
    explicit submit_scope(remote_op& op) noexcept;
    submit_scope(const submit_scope&) = delete;
    submit_scope& operator=(const submit_scope&) = delete;
    ~submit_scope() { innermost = outer_; }

    [[nodiscard]] bool has_arrived() const noexcept { return arrived_; }

    /// Returns true if `op` is being submitted on this thread: its await_suspend will see that it
    /// has arrived.
    static bool notice(const remote_op& op) noexcept;

private:
    friend struct executor_variables;

    static constinit inline thread_local submit_scope* innermost = nullptr;

    const remote_op* op_;
    submit_scope* outer_;
    bool arrived_ = false;
};

/// Runs coroutines on a thread that runs no context, one after the other. When a tree of coroutines
/// ends, the coroutines that waited for its end are queued and resumed after it has returned, not
/// inside it, so that a chain of them does not grow the stack (guarantee G10). A coroutine that is
/// resumed for another reason runs nested in the code that resumes it.
class resumptions {
public:
    /// Runs a coroutine and everything that its end makes ready, or queues it for a run() that is
    /// active on this thread.
    static void run(remote_op& op, const executor_place& place) noexcept;
    /// Called before a coroutine blocks this thread: runs the queued coroutines.
    static void run_waiting() noexcept;

    /// The root of the tree of the coroutine that run() runs on this thread; null if none or
    /// unknown.
    [[nodiscard]] static const promise_base* running_root() noexcept { return running; }

    /// Exists while the waiters for the end of a root are being notified.
    class ending {
    public:
        explicit ending(const promise_base* root) noexcept
            : outer_(coil::detail::exchange(innermost_ends, root != nullptr && root == running)) {}
        ending(const ending&) = delete;
        ending& operator=(const ending&) = delete;
        ~ending() { innermost_ends = outer_; }

    private:
        const bool outer_;
    };

private:
    friend struct executor_variables;

    static void run_all(fifo& waiting) noexcept;

    static constinit inline thread_local fifo* waiting_here = nullptr; // of the innermost run()
    static constinit inline thread_local const promise_base* running = nullptr; // running_root()
    static constinit inline thread_local bool innermost_ends = false;
};

/// A suspended await that moves its coroutine to another executor or waits for a remote operation.
/// It brings the coroutine to its resume_target. basic_handoff describes the states.
///
/// An await of a remote operation calls begin(), submits the work, then calls suspend(); the other
/// side calls complete() once, on any thread. A coroutine of a context returns through the
/// context's inbox, a coroutine of an executor by a submission of this op, and any other resumes on
/// the completing thread.
///
/// An await that moves the coroutine calls begin_move(), then depart().
///
/// The frames of a context's coroutines may be destroyed at any time, but only on the context's
/// thread; the frames of an executor's coroutines are destroyed only by executors that own frames.
/// If the destructor of a derived class finds that the op has not returned, it must withdraw the
/// work or wait until the op is back.
class remote_op : public work {
public:
    remote_op(const remote_op&) = delete;
    remote_op& operator=(const remote_op&) = delete;

    /// The work is done. May be called from any thread, once. The op may be destroyed when this
    /// returns.
    void complete() noexcept;

protected:
    explicit remote_op(function f = &arrive) noexcept : work(f, kind::arrival) {}
    ~remote_op() {
        COIL_ASSERT(!is_elsewhere());
        if (handoff_.is(handoff::queued)) [[unlikely]] {
            queue_->withdraw(*this, waiter_);
        }
    }

    // The await.

    /// Called before the work is submitted. `nearest` is the nearest root above, or null.
    void begin(std::coroutine_handle<> waiter, promise_base* nearest) noexcept {
        suspend_at(waiter, nearest, resume_target::here());
        handoff_.submit();
    }
    /// Called after the work was submitted. Returns false if the work is complete: the coroutine
    /// does not suspend. Otherwise it suspends; the op may already have been destroyed, unless the
    /// coroutine belongs to this thread's context.
    [[nodiscard]] bool suspend() noexcept { return handoff_.suspend(); }

    /// Called before depart().
    void begin_move(std::coroutine_handle<> waiter, promise_base* nearest,
                    const resume_target& to) noexcept {
        suspend_at(waiter, nearest, to);
        handoff_.move();
    }
    /// Submits the op to its target executor. True: the coroutine suspends, and the op may have
    /// been destroyed. False: the op has come back on this thread, and the coroutine continues.
    [[nodiscard]] bool depart() {
        submit_scope now(*this);
        target_.place.executor.submit(*this);
        return !now.has_arrived() || stay();
    }
    /// The same, but drops the op if the executor throws.
    [[nodiscard]] bool depart_or_drop() noexcept {
        submit_scope now(*this);
        submit_or_drop();
        return !now.has_arrived() || stay();
    }
    /// The coroutine continues on this thread. Returns false.
    bool stay() noexcept {
        end();
        if (root_ != nullptr && current_loop != nullptr && is_unowned(*root_)) {
            current_loop->adopt(*root_);
        }
        return false;
    }

    /// Called when the await ends: the coroutine runs, or the work was withdrawn.
    void end() noexcept { handoff_.end(); }
    /// Whether the await has begun and its coroutine has not returned.
    [[nodiscard]] bool is_elsewhere() const noexcept { return handoff_.is_elsewhere(); }
    /// Like is_elsewhere(), but false once the work is known to be complete.
    [[nodiscard]] bool is_pending() const noexcept { return handoff_.is_pending(); }
    /// May be called by the other side before complete(): false if the awaiter is being destroyed.
    [[nodiscard]] bool is_wanted() const noexcept { return handoff_.is_wanted(); }

    /// Whether the coroutine's executor was shut down, so that it resumes elsewhere.
    [[nodiscard]] bool lost_executor() const noexcept { return lost_executor_; }
    /// Throws std::errc::operation_canceled if lost_executor(): "coil: NAME: the executor ... was
    /// shut down".
    void throw_if_executor_lost(const char* name) const {
        if (lost_executor_) [[unlikely]] {
            throw_executor_lost(name);
        }
    }

    /// The nearest root above the await, or null if unknown.
    [[nodiscard]] promise_base* nearest() const noexcept { return nearest_; }
    /// The root that moves together with the coroutine, or null: see movable_above().
    [[nodiscard]] promise_base* root() const noexcept { return root_; }
    [[nodiscard]] const resume_target& target() const noexcept { return target_; }

    /// Called before the suspended await is added to its loop's list of awaits that are away.
    void set_away_node(away_node& node) noexcept { away_node_ = &node; }

    // For derived classes with a work function of their own.

    void set_target(const resume_target& to) noexcept { target_ = to; }
    void set_executor_lost() noexcept { lost_executor_ = true; }
    void return_to_target() noexcept;
    /// Called before the op is posted to a loop.
    void settle_on_delivery() noexcept;
    /// Resumes here, regardless of the target.
    void resume_anywhere() noexcept { resume_here({}, false); }
    /// The work function of ops that need nothing else.
    static void arrive(work& w, fate what) noexcept;

    // For a destructor that finds the op elsewhere.

    /// Terminates the program if the op belongs to a context other than the current one.
    void require_own_thread() const noexcept;
    /// Blocks until the op is back; terminates the program if it cannot come back. `other` is the
    /// root that the op waits for, or null.
    void wait_until_back(const promise_base* other) noexcept;
    /// The same for work that ends by itself; the thread does nothing else meanwhile.
    void block_until_complete() noexcept;

private:
    friend class submit_scope;
    friend class resumptions;
    class return_wait;

    void suspend_at(std::coroutine_handle<> waiter, promise_base* nearest,
                    const resume_target& to) noexcept {
        waiter_ = waiter;
        nearest_ = nearest;
        root_ = movable_above(nearest);
        set_owned(root_ == nullptr);
        target_ = to;
    }
    [[noreturn]] static void throw_executor_lost(const char* name);
    void submit_or_drop() noexcept;
    void resume_here(const executor_place& place, bool scoped) noexcept;
    void settle(event_loop& loop) noexcept;
    [[nodiscard]] bool take_from_owner() noexcept;

    handoff handoff_;
    bool lost_executor_ = false;
    std::coroutine_handle<> waiter_;
    promise_base* nearest_ = nullptr;
    promise_base* root_ = nullptr;
    resume_target target_{};
    event_loop* queue_ = nullptr;          // the loop whose ready queue contains the op
    away_node* away_node_ = nullptr;       // of the same await, if it has one
    submit_scope* submit_scope_ = nullptr; // may dangle: notice() only compares it
};

inline submit_scope::submit_scope(remote_op& op) noexcept
    : op_(&op), outer_(coil::detail::exchange(innermost, this)) {
    op.submit_scope_ = this;
}

/// A scope or an op may have the address of an earlier one, so both must match.
inline bool submit_scope::notice(const remote_op& op) noexcept {
    for (submit_scope* one = innermost; one != nullptr; one = one->outer_) {
        if (one == op.submit_scope_ && one->op_ == &op) {
            one->arrived_ = true;
            return true;
        }
    }
    return false;
}

} // namespace coil::detail
