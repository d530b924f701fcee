#pragma once

#include <coil/context/detail/destructor_waits.hpp>
#include <coil/context/detail/task_list.hpp>
#include <coil/core/promise.hpp>

namespace coil::detail {

class remote_child_owner;

/// Destroys remote children on request (context/remote_child.hpp): tasks on this loop whose
/// awaiter, on another context or executor, waits for them in the destructor of its frame. Owner
/// thread.
///
/// That destructor must not depend on the progress of any coroutine, so a remote child is destroyed
/// where it is suspended, like its parent. The child does not run meanwhile, and the destruction of
/// its own remote children is requested first, so that its destructors have nothing to wait for.
///
/// A destructor waits only for tasks below its own frame. Such a task is destroyed by its own
/// context, between two turns. If a destructor waits on that context's thread, there are no turns;
/// that destructor then destroys the task, if the task has not run since that wait began, or is
/// below that destructor's frame too. So waits follow the tree of tasks downwards, except while the
/// thread of a remote child is in an unrelated destructor.
class kill_requests {
public:
    kill_requests(task_list& tasks, destructor_waits& waits) noexcept
        : tasks_(tasks), waits_(waits) {}
    kill_requests(const kill_requests&) = delete;
    kill_requests& operator=(const kill_requests&) = delete;

    /// The destruction of a remote child that is on this loop was requested.
    void note(remote_child_owner& child) noexcept;
    [[nodiscard]] bool pending() const noexcept {
        return requested_ != nullptr || held_up_ != nullptr;
    }

    /// Called between two turns. The request for a task with an outstanding remote operation stays
    /// pending until that operation has ended.
    void process() noexcept;
    /// Called by a waiting destructor: processes only tasks that cannot run before it returns.
    void process_arrived() noexcept;

private:
    /// Destroys the selected children that have no outstanding remote operation, and those that
    /// this leaves without one. Before that, requests the destruction of what the remote operations
    /// of all selected children wait for.
    template <class Predicate>
    void destroy_free(Predicate may_be_destroyed) noexcept;
    template <class Predicate>
    void request_below(Predicate may_be_destroyed) noexcept;

    task_list& tasks_;
    destructor_waits& waits_;
    remote_child_owner* requested_ = nullptr; // to be examined
    remote_child_owner* held_up_ = nullptr;   // examined, and not destroyed
    bool processing_ = false;                 // no coroutine runs above this on the stack
};

} // namespace coil::detail
