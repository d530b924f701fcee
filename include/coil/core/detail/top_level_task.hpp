#pragma once

#include <coil/base/assert.hpp>
#include <coil/core/detail/promise_base.hpp>
#include <coil/core/detail/task_state.hpp>

#include <cstdint>

// The transitions of a top-level task; task_state has the table.

namespace coil::detail {

/// How many top-level tasks have left a context's list on this thread. A task that leaves does not
/// know the list. A loop that runs coroutines swaps in its own count, so that what leaves meanwhile
/// is counted for its list and not for that of a loop below it on the stack.
constinit inline thread_local std::uint64_t tasks_left_on_this_thread = 0;

/// The top-level tasks of a context that are in one state, newest first.
template <task_state State>
class task_chain {
    static_assert(State == task_state::listed || State == task_state::held_back);

public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] promise_base* first() const noexcept { return first_; }

    void insert(promise_base& task) noexcept {
        COIL_ASSERT(!task.link.is_in_list() && !task.link.is(task_state::ended));
        task.next_task = first_;
        task.link = task_link(State, &first_);
        if (first_ != nullptr) {
            first_->link = task_link(State, &task.next_task);
        }
        first_ = &task;
    }

private:
    promise_base* first_ = nullptr;
};

/// listed or held_back → in no list, until its next state is set. An unowned task is its own list.
inline void unlink_task(promise_base& task) noexcept {
    COIL_ASSERT(task.link.is_in_list() || task.link.is(task_state::unowned));
    COIL_ASSERT(*task.link.at() == &task || task.link.is(task_state::unowned));
    *task.link.at() = task.next_task;
    if (task.next_task != nullptr) {
        task.next_task->link = task.link;
    }
}

/// none → spawned
inline void begin_spawned(promise_base& task) noexcept {
    COIL_ASSERT(task.link.is(task_state::none));
    task.link = task_link(task_state::spawned);
}

/// none → unowned. The word links the task to itself, so that unlink_task() needs no special case.
inline void begin_unowned(promise_base& task) noexcept {
    task.next_task = nullptr;
    task.link = task_link(task_state::unowned, &task.next_task);
}
[[nodiscard]] inline bool is_unowned(const promise_base& task) noexcept {
    return task.link.is(task_state::unowned);
}

/// listed, unowned → moving
inline void begin_moving(promise_base& task) noexcept {
    COIL_ASSERT(task.link.is(task_state::listed) || task.link.is(task_state::unowned));
    ++tasks_left_on_this_thread;
    unlink_task(task);
    task.link = task_link(task_state::moving);
}

/// listed → unowned
inline void leave_context(promise_base& task) noexcept {
    COIL_ASSERT(task.link.is_in_list());
    ++tasks_left_on_this_thread;
    unlink_task(task);
    begin_unowned(task);
}

/// listed, held_back, unowned → ended. An unowned task has left its context already.
inline void end_task(promise_base& task) noexcept {
    tasks_left_on_this_thread += is_unowned(task) ? 0 : 1;
    unlink_task(task);
    task.link = task_link(task_state::ended);
}

} // namespace coil::detail
