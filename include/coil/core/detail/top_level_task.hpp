#pragma once

#include <coil/base/assert.hpp>
#include <coil/core/detail/promise_base.hpp>
#include <coil/core/detail/task_state.hpp>

#include <cstdint>

// The transitions of a top-level task; task_state has the table.

namespace coil::detail {

/// How many top-level tasks have left a context's list on this thread. A task that leaves does not
/// know its list, so it increments this variable. A loop that runs coroutines swaps in its own
/// count: tasks that leave meanwhile are counted for its list, not for that of an outer loop.
constinit inline thread_local std::uint64_t tasks_left_on_this_thread = 0;

/// The top-level tasks of a context that are in one state, newest first. After the oldest comes a
/// permanent end node that is linked like a task. A task can therefore leave without access to the
/// list, and the oldest task is found from the end node.
template <task_state State>
class task_chain {
    static_assert(State == task_state::listed || State == task_state::held_back);

public:
    task_chain() noexcept {
        end_.next_task = nullptr;
        end_.link = task_link(State, &first_);
    }
    task_chain(const task_chain&) = delete;
    task_chain& operator=(const task_chain&) = delete;

    [[nodiscard]] bool empty() const noexcept { return first_ == &end_; }
    /// The newest task, or null. next_listed() returns the next one.
    [[nodiscard]] promise_base* first() const noexcept { return empty() ? nullptr : first_; }

    /// The position after the oldest task.
    [[nodiscard]] promise_base& end() noexcept { return end_; }
    /// The task before another one or before end(), or null.
    [[nodiscard]] promise_base* previous(const promise_base& task) noexcept {
        promise_base** const at = task.link.at();
        if (at == &first_) {
            return nullptr;
        }
        const auto offset =
            reinterpret_cast<char*>(&end_.next_task) - reinterpret_cast<char*>(&end_);
        return reinterpret_cast<promise_base*>(reinterpret_cast<char*>(at) - offset);
    }

    void insert(promise_base& task) noexcept {
        COIL_ASSERT(!task.link.is_in_list() && !task.link.is(task_state::ended));
        task.next_task = first_;
        task.link = task_link(State, &first_);
        first_->link = task_link(State, &task.next_task);
        first_ = &task;
    }

private:
    promise_base end_;
    promise_base* first_ = &end_;
};

/// The task after one that is in a context's list, or null.
[[nodiscard]] inline promise_base* next_listed(const promise_base& task) noexcept {
    promise_base* const next = task.next_task;
    return next->next_task != nullptr ? next : nullptr;
}

/// listed or held_back → in no list, until its next state is set. An unowned task is in a list of
/// its own.
inline void unlink_task(promise_base& task) noexcept {
    COIL_ASSERT(task.link.is_in_list() || task.link.is(task_state::unowned));
    COIL_ASSERT(*task.link.at() == &task || task.link.is(task_state::unowned));
    *task.link.at() = task.next_task;
    if (task.next_task != nullptr) {
        task.next_task->link = task.link;
    }
}

/// Inserts a marker into a context's list, in front of one of its tasks or of its end node. A
/// marker is removed like a task, but not counted.
inline void insert_marker(promise_base& marker, promise_base& task) noexcept {
    COIL_ASSERT(task.link.is_in_list());
    marker.next_task = &task;
    marker.link = task.link;
    *task.link.at() = &marker;
    task.link = task_link(task.link.state(), &marker.next_task);
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

/// listed, unowned → ended. An unowned task has left its context already.
inline void end_task(promise_base& task) noexcept {
    tasks_left_on_this_thread += is_unowned(task) ? 0 : 1;
    unlink_task(task);
    task.link = task_link(task_state::ended);
}

} // namespace coil::detail
