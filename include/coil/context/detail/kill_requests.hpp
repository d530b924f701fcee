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
/// A destructor waits for tasks below the frame that it is of. What it waits for is destroyed by
/// the turn of the context where it is, or in the wait of a destructor there if it has not run
/// since that began, or if it is below that destructor's frame as well. So waits follow the tree of
/// tasks downwards, except where the thread of a remote child is in a destructor for something
/// else.
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
