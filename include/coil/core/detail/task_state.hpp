#pragma once

#include <coil/base/assert.hpp>

#include <cstdint>

namespace coil::detail {

class promise_base;

/// Where a top-level task is. A top-level task is the root of a tree of awaits whose owner is not a
/// coroutine of the same context: a spawned task, a task of on(), an async_task. Each transition is
/// a function of core/detail/top_level_task.hpp or of a context's task_list.
///
///     none      → spawned, listed, unowned
///     spawned   → listed
///     listed    → held_back, moving, unowned, ended
///     held_back → listed
///     moving    → listed
///     unowned   → listed, moving, ended
///
/// A state is written by the thread on which the task is: its context's, its executor's, or the
/// sender's before it posts the task. A context destroys only listed tasks; it first receives the
/// tasks that were posted to it.
enum class task_state : std::uintptr_t {
    none,      ///< was not given to a context or an executor
    spawned,   ///< was posted to its first context, in whose inbox it is
    listed,    ///< is on a context, in its list
    held_back, ///< is on a context that shuts down, in a second list: it waits for work elsewhere
    moving,    ///< was posted to its next context, in whose inbox it is
    unowned,   ///< runs or waits outside of all contexts; no context destroys it
    ended,     ///< has ended, or is being destroyed
};

/// The state of a top-level task and, in a list, the pointer that points to it: one word of its
/// promise. Trivial, because the promise of an awaited task uses the word as a pointer.
class task_link {
public:
    task_link() noexcept = default;
    explicit task_link(task_state state) noexcept : word_(static_cast<std::uintptr_t>(state)) {}
    task_link(task_state state, promise_base** at) noexcept
        : word_(reinterpret_cast<std::uintptr_t>(at) | static_cast<std::uintptr_t>(state)) {
        static_assert(alignof(promise_base*) > state_mask);
    }

    [[nodiscard]] task_state state() const noexcept {
        return static_cast<task_state>(word_ & state_mask);
    }
    [[nodiscard]] bool is(task_state state) const noexcept { return this->state() == state; }
    /// On a context, in one of its lists.
    [[nodiscard]] bool is_in_list() const noexcept {
        return is(task_state::listed) || is(task_state::held_back);
    }
    /// The pointer to the task.
    [[nodiscard]] promise_base** at() const noexcept {
        return reinterpret_cast<promise_base**>(word_ & ~state_mask);
    }

private:
    static constexpr std::uintptr_t state_mask = 7;

    std::uintptr_t word_;
};

} // namespace coil::detail
