#pragma once

#include <coil/base/minmax.hpp>
#include <coil/context/detail/destructor_waits.hpp>
#include <coil/context/detail/task_list.hpp>
#include <coil/core/detail/promise.hpp>

#include <cstdint>
#include <optional>

namespace coil::detail {

class event_loop;
class frame_owners;
class remote_child_owner;

/// Destroys remote children on request (context/detail/remote_child.hpp): tasks on this loop whose
/// awaiter, on another context or executor, waits for them in the destructor of its frame. Owner
/// thread.
///
/// That destructor must not depend on the progress of any coroutine, so a remote child is destroyed
/// where it is suspended, like its parent. The child does not run meanwhile, and the destruction of
/// its own remote children is requested first, so that its destructors have little to wait for.
/// They run on a side stack: a destructor that waits delays no other one, whatever the two wait
/// for.
///
/// A destructor waits only for tasks below its own frame. Normally the task's own context destroys
/// it, between two turns. While some other destructor waits on that context's thread there are no
/// turns, and that other destructor destroys the task in two cases: the task arrived after the
/// other wait began, so it has not run there; or it is below the other destructor's frame too.
///
/// Otherwise the other destructor is unrelated, and the task is blocked until it returns. Only such
/// waits can form a cycle, because all others point down the tree of tasks. If the other destructor
/// is part of such a cycle (wait_cycles), it destroys the blocked task, provided that the task is
/// certainly suspended (suspended_tasks).
class kill_requests {
public:
    kill_requests(task_list& tasks, destructor_waits& waits) noexcept
        : tasks_(tasks), waits_(waits) {}
    kill_requests(const kill_requests&) = delete;
    kill_requests& operator=(const kill_requests&) = delete;

    /// The destruction of a remote child that is on this loop was requested.
    void note(remote_child_owner& child) noexcept;
    [[nodiscard]] bool pending() const noexcept {
        return requested_ != nullptr || held_up_ != nullptr || waits_.any_aside();
    }

    /// Called between two turns. The request for a task with an outstanding remote operation stays
    /// pending until that operation has ended. Returns when no destructor waits on a side stack.
    void process(event_loop& loop) noexcept;
    /// Whether no coroutine is active on this thread, although destructors are.
    [[nodiscard]] bool is_between_turns() const noexcept { return between_turns_; }
    /// Called around the part of a turn in which coroutines run. Elsewhere in the turn a destructor
    /// may be called by code that belongs to a suspended task, such as a stop callback.
    void set_running_coroutines(bool running) noexcept { runs_coroutines_ = running; }
    /// Called by a waiting destructor: processes only the tasks that it may destroy.
    void process_arrived() noexcept;
    /// Called after process_arrived(): registers the blocked tasks, so that other threads find
    /// cycles of waits. Processes those that are part of one, if it was a coroutine that called the
    /// destructor.
    void process_blocked(event_loop& loop) noexcept;
    /// Called when that destructor no longer waits. If others wait on side stacks, the coroutine
    /// that has called it continues, but no other one runs before process() has returned: it may be
    /// the one that is being destroyed, or use its objects.
    void wait_ended(event_loop& loop) noexcept;

private:
    /// Requests the destruction of everything that the remote operations of the selected children
    /// wait for, then destroys the selected children without an outstanding remote operation.
    /// Repeats that while it makes progress, because it may end remote operations of others.
    template <class Predicate>
    void destroy_free(Predicate may_be_destroyed) noexcept;
    template <class Predicate>
    void request_below(Predicate may_be_destroyed) noexcept;
    template <class Predicate>
    [[nodiscard]] remote_child_owner* take_free(Predicate may_be_destroyed) noexcept;
    [[nodiscard]] bool cannot_own_nursery(const remote_child_owner& child) const noexcept;
    [[nodiscard]] bool
    may_be_destroyed_between_turns(remote_child_owner& child,
                                   std::optional<frame_owners>& owners) const noexcept;
    /// Whether a destructor that waits on this loop's thread may destroy the task.
    [[nodiscard]] bool may_be_destroyed_in_wait(const remote_child_owner& child) const noexcept;
    /// Returns whether it has released any blocked task.
    [[nodiscard]] bool release_from_cycles(event_loop& loop) noexcept;
    /// The destruction of the task that owns the nursery that is being destroyed, null if unknown,
    /// may be requested only now. That request then becomes the cause of the outermost destructor
    /// that waits here.
    void find_cause(promise_base* owner) noexcept;

    /// Proving that a task is suspended is expensive, because the frames of all tasks are read.
    /// Each proof that releases no task doubles the number of calls until the next proof.
    class fruitless_proofs {
    public:
        /// Counts a call, and returns whether the next proof is due.
        [[nodiscard]] bool is_next_due() noexcept { return ++calls_ >= calls_to_the_next_; }
        void proved(bool anything) noexcept {
            calls_ = 0;
            calls_to_the_next_ =
                anything ? 1 : coil::detail::min(2 * calls_to_the_next_, most_calls_to_the_next);
        }

    private:
        static constexpr unsigned most_calls_to_the_next = 8; // 80 ms, at one call per 10 ms

        unsigned calls_ = 0;
        unsigned calls_to_the_next_ = 1;
    };

    task_list& tasks_;
    destructor_waits& waits_;
    remote_child_owner* requested_ = nullptr; // to be examined
    remote_child_owner* held_up_ = nullptr;   // examined, and not destroyed
    std::uint64_t destroyed_ = 0;
    bool between_turns_ = false; // in process()
    bool any_blocked_ = false;
    bool runs_coroutines_ = false;
    fruitless_proofs fruitless_;
};

} // namespace coil::detail
