#pragma once

#include "frame_owners.hpp"
#include "leaf_search.hpp"

#include <coil/core/detail/promise_base.hpp>

#include <cstddef>
#include <unordered_set>

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
    /// Without the proof that no nursery whose owner is unknown belongs to the task.
    [[nodiscard]] bool contain_apart_from_unknown_owners(const promise_base& task) const;
    /// The top-level task whose coroutine has called the destructor that waits, or null if unknown.
    /// `resumed` is the frame that the loop has resumed last.
    [[nodiscard]] promise_base* running_task(const void* resumed) const;

private:
    void index_waits();
    [[nodiscard]] bool is_suspended(const promise_base& leaf, const void* address,
                                    const promise_base& root) const;

    event_loop& loop_;
    leaf_search leaves_;
    frame_owners owners_;
    std::unordered_set<const void*> ready_; // frames
    std::unordered_set<const promise_base*> joining_;
    std::unordered_set<const promise_base*> away_; // roots
    /// Roots below which a coroutine may be running: top-level tasks, and children of nurseries.
    std::unordered_set<promise_base*> unproven_;
    /// The known owners of nurseries that have such children.
    std::unordered_set<const promise_base*> owners_of_unproven_;
    bool is_an_owner_unknown_ = false; // of such a nursery
};

} // namespace coil::detail
