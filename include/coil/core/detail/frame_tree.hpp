#pragma once

#include <coil/base/assert.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/core/detail/promise.hpp>

#include <coroutine>
#include <cstdint>

// Destroying frames that own other frames, with as few nested calls as possible (guarantee G10).
//
// A suspended task stores what it awaits, so a loop destroys the tree of frames below it from its
// leaves upwards: a child, which may refer to its parent's frame, before the parent. Other frames
// that a frame owns, in a parameter or a local, are destroyed by nested calls of their destructors.
// Once these calls have used a certain amount of stack, the frame of a task that has not started or
// has ended, which holds only parameters, is destroyed when the outermost call has returned. The
// frame of a suspended task is still destroyed immediately: its locals may refer to outer frames.

namespace coil::detail {

[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

/// Tasks are destroyed on the slow path if the stack has grown below this address. The initial
/// value selects the slow path, which computes the limit.
constinit inline thread_local std::uintptr_t destroying_floor = UINTPTR_MAX;

/// The frames deferred to the end of the outermost destruction of a task in progress on this stack.
struct frames_put_off {
    promise_base* newest = nullptr;
};
constinit inline thread_local frames_put_off* outermost_destruction = nullptr;

/// Destroys everything that `top` awaits and owns, but not its own frame.
void destroy_frames_below(promise_base& top) noexcept;
void destroy_task_slowly(std::coroutine_handle<> coroutine, promise_base& promise) noexcept;

/// Destroys a coroutine, suspended at any point, and everything that it awaits.
template <class Promise>
void destroy_tree(std::coroutine_handle<Promise> coroutine) noexcept {
    const destroying_frames here;
    if (coroutine.promise().has_below()) {
        destroy_frames_below(coroutine.promise());
    }
    coroutine.destroy();
}

/// Destroys the coroutine of a task<T>, which in most cases has ended.
template <class Promise>
void destroy_task(std::coroutine_handle<Promise> coroutine) noexcept {
#if COIL_ASSERTIONS
    const destroying_frames here;
#endif
    if (coroutine.promise().has_below() ||
        reinterpret_cast<std::uintptr_t>(COIL_STACK_ADDRESS) < destroying_floor) [[unlikely]] {
        destroy_task_slowly(coroutine, coroutine.promise());
    } else {
        coroutine.destroy();
    }
}

} // namespace coil::detail
