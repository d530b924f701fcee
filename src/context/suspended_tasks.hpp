#pragma once

#include "frame_owners.hpp"
#include "leaf_search.hpp"

#include <coil/core/detail/promise_base.hpp>

#include <cstddef>
#include <unordered_set>
#include <vector>

namespace coil::detail {

/// Decides, in a destructor that waits in the middle of a turn, which tasks of the loop may be
/// destroyed there: those that have nothing on the stack of this thread, that is, neither a running
/// coroutine nor an object that is being destroyed. Recording this at every resumption would cost
/// time, so it is proved from the following; a task without a complete proof may be on the stack.
///
/// - Every coroutine of the task's tree is suspended: each leaf is in the ready queue, or its frame
///   holds an await that has begun and not ended.
/// - No nursery that is being destroyed is a local variable of the task's coroutines.
/// - The children of nurseries that may belong to the task are suspended, in the same sense. A
///   nursery belongs to the task in whose frames it is; the owner of any other is unknown.
///
/// A snapshot: valid until a coroutine runs. The constructor reads the frames of all tasks on the
/// loop.
class suspended_tasks {
public:
    explicit suspended_tasks(event_loop& loop);

    [[nodiscard]] bool contain(const promise_base& task) const;
    /// The same for a task that is below the waiting destructor by a cause that was found later. If
    /// only one task may be running, it is the one that has called the destructor. The nurseries
    /// above it do not belong to a task below it, so their owners need not be found.
    [[nodiscard]] bool contain_if_below(const promise_base& task) const;
    /// The task that owns the nursery whose destruction is further out than all others on the
    /// thread's own stack, or null if unknown. It cannot be destroyed before that destructor has
    /// returned.
    [[nodiscard]] promise_base* owner_of_first_left() const;

private:
    void index_waits();
    [[nodiscard]] bool is_suspended(const promise_base& leaf, const void* address,
                                    const promise_base& root) const;
    [[nodiscard]] bool is_joined_by(const listed_children& group, const promise_base& task) const;
    [[nodiscard]] bool contain_apart_from_unowned(const promise_base& task) const;

    event_loop& loop_;
    leaf_search leaves_;
    frame_owners owners_;
    std::unordered_set<const void*> ready_; // frames
    std::unordered_set<const promise_base*> joining_;
    std::unordered_set<const promise_base*> away_; // roots
    /// Roots below which a coroutine may be running: top-level tasks, and children of nurseries.
    std::unordered_set<const promise_base*> unproven_;
    /// The owners of nurseries that have such children, and the nurseries whose owner is unknown.
    std::unordered_set<const promise_base*> owners_of_unproven_;
    std::vector<const listed_children*> unowned_;
};

} // namespace coil::detail
