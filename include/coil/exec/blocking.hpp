#pragma once

#include <coil/exec/blocking_pool.hpp>
#include <coil/exec/detail/blocking_call.hpp>
#include <coil/exec/detail/offload.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil {

/// Calls `f` on a thread of default_blocking_pool() and resumes here with its result:
///
///     auto text = co_await blocking([&] { return read_config(path); });
///
/// For functions that block or compute for a long time. `f` is callable with no argument or with
/// the awaiting task's inplace_stop_token, which signals that the result is no longer needed. `f`
/// is moved into the await, called once, as an rvalue, and destroyed on the awaiting thread;
/// nothing is allocated. The await returns the result of `f` (a movable value, a reference, or
/// void) or throws its exception.
///
/// Threading: `f` runs on another thread while this coroutine is suspended. Everything before the
/// await happens before `f`, which happens before everything after the await. The coroutine resumes
/// on its context or on the executor that runs it (a run_loop); without either, on the pool's
/// thread or on the one that requests a stop. Calls start in submission order. If all threads are
/// busy or the queue is full, the coroutine stays suspended. The await throws std::system_error
/// with the error of pthread_create(3) only if the pool has no thread and cannot create one.
///
/// Cancellation: if a stop is requested before `f` has started, it is not called, and the await
/// immediately throws std::system_error with std::errc::operation_canceled. Once it has started it
/// is waited for and its real result returned. A context that shuts down withdraws calls that have
/// not started, and blocks its thread in the destructor of the awaiting task until the others have
/// returned. A function that may block forever should therefore take a token. (A shutdown does not
/// request a stop: request one before it.)
template <class F>
    requires detail::once_callable<std::decay_t<F>>
detail::blocking_call<std::decay_t<F>> blocking(F&& f) {
    return {default_blocking_pool(), std::decay_t<F>(std::forward<F>(f))};
}

/// The same on another pool, which must outlive the call.
template <class F>
    requires detail::once_callable<std::decay_t<F>>
detail::blocking_call<std::decay_t<F>> blocking(blocking_pool& pool, F&& f) {
    return {pool, std::decay_t<F>(std::forward<F>(f))};
}

/// Produces a readable compiler error.
template <class F>
    requires(!detail::once_callable<std::decay_t<F>>)
void blocking(F&&) COIL_DELETE(
    "blocking(f) calls f with nothing, or with an inplace_stop_token; bind arguments in a lambda");

template <class F, class... Args>
    requires(sizeof...(Args) > 0 && std::invocable<F, Args...>)
void blocking(F&&, Args&&...)
    COIL_DELETE("blocking(f) calls f with nothing, or with an inplace_stop_token; bind arguments "
                "in a lambda");

} // namespace coil
