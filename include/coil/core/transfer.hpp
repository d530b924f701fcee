#pragma once

#include <coil/core/config.hpp>

#include <coroutine>
#include <utility>

// How one coroutine hands the thread to the next without growing the stack (guarantee G10).
//
// An awaiter's await_suspend returns `transfer` made by `transfer_to(next)`; whoever starts a
// coroutine from outside calls `detail::resume(handle)`, never `handle.resume()`.

namespace coil::detail {

#if COIL_SYMMETRIC_TRANSFER

using transfer = std::coroutine_handle<>;

inline transfer transfer_to(std::coroutine_handle<> next) noexcept { return next; }
inline transfer transfer_to_nobody() noexcept { return std::noop_coroutine(); }
inline void resume(std::coroutine_handle<> coroutine) { coroutine.resume(); }
/// For whoever calls an await_suspend by hand: what a `void` one has asked to be run next, or null.
inline std::coroutine_handle<> take_transfer() noexcept { return {}; }

#else

using transfer = void;

/// The coroutine that the one which is just suspending wants to run next. Null whenever user code
/// runs, so a nested resume() (a synchronous generator inside a coroutine) cannot steal it.
constinit inline thread_local std::coroutine_handle<> next_to_resume{};

inline void transfer_to(std::coroutine_handle<> next) noexcept { next_to_resume = next; }
inline void transfer_to_nobody() noexcept {}

inline std::coroutine_handle<> take_transfer() noexcept {
    return std::exchange(next_to_resume, std::coroutine_handle<>{});
}

inline void resume(std::coroutine_handle<> coroutine) {
    do {
        coroutine.resume();
        coroutine = std::exchange(next_to_resume, std::coroutine_handle<>{});
    } while (coroutine);
}

#endif

} // namespace coil::detail
