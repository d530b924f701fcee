#pragma once

#include <coil/core/promise.hpp>

#include <coroutine>
#include <cstdint>

// How frames are destroyed that own other frames, without growing the stack (guarantee G10).
//
// A suspended task knows what it awaits, so the tree of frames below it is destroyed from its
// leaves upwards by a loop: a child, which may refer to its parent's frame, before the parent. What
// a frame holds beside that, in a parameter or a local, is destroyed by its destructor, by a nested
// call. Tasks that have not begun, or are over, consist of parameters only; when such calls have
// used up some stack, these frames are put off until the outermost call has returned.

namespace coil::detail {

[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

/// Below this address of the stack a task is destroyed the slow way. At first everything is.
constinit inline thread_local std::uintptr_t destroying_floor = UINTPTR_MAX;

/// All that `top` awaits and owns, but not its own frame.
void destroy_frames_below(promise_base& top) noexcept;
void destroy_task_slowly(std::coroutine_handle<> coroutine, promise_base& promise) noexcept;

/// A coroutine that may be suspended anywhere, with what it awaits.
template <class Promise>
void destroy_tree(std::coroutine_handle<Promise> coroutine) noexcept {
    if (coroutine.promise().has_below()) {
        destroy_frames_below(coroutine.promise());
    }
    coroutine.destroy();
}

/// What a task<T> owns, which in most cases is over.
template <class Promise>
void destroy_task(std::coroutine_handle<Promise> coroutine) noexcept {
    const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (coroutine.promise().has_below() || stack < destroying_floor) [[unlikely]] {
        destroy_task_slowly(coroutine, coroutine.promise());
    } else {
        coroutine.destroy();
    }
}

} // namespace coil::detail
