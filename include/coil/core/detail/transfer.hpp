#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>

#include <coroutine>
#include <type_traits>

// Symmetric transfer between coroutines without stack growth (guarantee G10).
//
// An awaiter's await_suspend returns a `transfer` created by `transfer_to(self, next)`; `self` is
// the coroutine that suspends. After that call await_suspend must not access the frame. coil
// resumes coroutines with `detail::resume(handle)`; other code may call `handle.resume()`.

namespace coil::detail {

#if COIL_SYMMETRIC_TRANSFER

using transfer = std::coroutine_handle<>;

inline transfer transfer_to(std::coroutine_handle<>, std::coroutine_handle<> next) noexcept {
    return next;
}
inline transfer transfer_to_nobody() noexcept { return std::noop_coroutine(); }
inline void resume(std::coroutine_handle<> coroutine) { coroutine.resume(); }

/// Calls an await_suspend directly. Returns the coroutine that it wants to run next, or null.
template <class Awaiter, class Promise>
std::coroutine_handle<> suspend_by_hand(Awaiter& awaiter, std::coroutine_handle<Promise> self) {
    if constexpr (std::is_void_v<decltype(awaiter.await_suspend(self))>) {
        awaiter.await_suspend(self);
        return {};
    } else {
        return awaiter.await_suspend(self);
    }
}

#else

using transfer = void;

/// The coroutine to run after the one that is just suspending. Always null while user code runs, so
/// a nested resume() (of a synchronous generator in a coroutine) cannot take it.
constinit inline thread_local std::coroutine_handle<> next_to_resume{};
/// The coroutine that the innermost resume() on this thread has resumed. When that coroutine
/// suspends, resume() runs the one in next_to_resume. This does not happen after a plain
/// handle.resume().
constinit inline thread_local void* driven = nullptr;

inline std::coroutine_handle<> take_transfer() noexcept {
    return coil::detail::exchange(next_to_resume, std::coroutine_handle<>{});
}

class driving {
public:
    driving() noexcept = default;
    driving(const driving&) = delete;
    driving& operator=(const driving&) = delete;
    ~driving() { driven = outer_; }

private:
    void* const outer_ = driven;
};

inline void resume(std::coroutine_handle<> coroutine) {
    const driving outer;
    do {
        driven = coroutine.address();
        coroutine.resume();
        coroutine = take_transfer();
    } while (coroutine);
}

inline void transfer_to(std::coroutine_handle<> self, std::coroutine_handle<> next) noexcept {
    if (driven == self.address()) [[likely]] {
        next_to_resume = next;
    } else {
        resume(next); // this driver also resumes `self`, when a coroutine transfers to it
    }
}
inline void transfer_to_nobody() noexcept {}

template <class Awaiter, class Promise>
std::coroutine_handle<> suspend_by_hand(Awaiter& awaiter, std::coroutine_handle<Promise> self) {
    if constexpr (std::is_void_v<decltype(awaiter.await_suspend(self))>) {
        const driving outer;
        driven = self.address();
        awaiter.await_suspend(self);
        return take_transfer();
    } else {
        return awaiter.await_suspend(self);
    }
}

#endif

} // namespace coil::detail
