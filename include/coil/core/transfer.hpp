#pragma once

#include <coil/core/config.hpp>

#include <coroutine>
#include <utility>

// Symmetric transfer between coroutines without stack growth (guarantee G10).
//
// An awaiter's await_suspend returns `transfer`, made by `transfer_to(next)`. Code that starts a
// coroutine from outside calls `detail::resume(handle)`, never `handle.resume()`.

namespace coil::detail {

#if COIL_SYMMETRIC_TRANSFER

using transfer = std::coroutine_handle<>;

inline transfer transfer_to(std::coroutine_handle<> next) noexcept { return next; }
inline transfer transfer_to_nobody() noexcept { return std::noop_coroutine(); }
inline void resume(std::coroutine_handle<> coroutine) { coroutine.resume(); }
/// For code that calls an await_suspend directly: the coroutine that a `void` one wants to run
/// next, or null.
inline std::coroutine_handle<> take_transfer() noexcept { return {}; }

#else

using transfer = void;

/// The coroutine to run after the one that is just suspending. Always null while user code runs, so
/// a nested resume() (of a synchronous generator in a coroutine) cannot take it.
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
