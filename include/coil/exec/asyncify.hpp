#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/exec/detail/executor_function.hpp>
#include <coil/exec/detail/offload.hpp>
#include <coil/exec/detail/requeued_function.hpp>
#include <coil/exec/executor.hpp>

#include <type_traits>
#include <utility>

namespace coil {

/// Calls `f` in a later iteration of this loop and returns its result:
///
///     const auto part = co_await asyncify([&] { return compress(block); });
///
/// Before that, all ready coroutines run, and the loop processes timers, completions and messages
/// of other threads. A long computation that is split into asyncify() calls thus delays other
/// coroutines by at most one piece.
///
/// `f` is callable with no argument or with the awaiting task's inplace_stop_token. It is moved
/// into the await and called once, as an rvalue; nothing is allocated. The await returns the result
/// of `f`, of any type, or throws its exception.
///
/// Threading: `f` runs on this context's thread, or on that of the executor that runs the coroutine
/// (a run_loop).
///
/// Cancellation: if a stop is requested before `f` is called, it is not called, and the await
/// throws std::system_error with std::errc::operation_canceled.
template <class F>
    requires detail::once_callable<std::decay_t<F>>
detail::requeued_function<std::decay_t<F>> asyncify(F&& f) {
    return detail::requeued_function<std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
}

/// Calls `f` on an executor and resumes here with its result. `f` and its result are treated as in
/// blocking(f). The queue entry takes one small allocation. A named executor must outlive the
/// await; a temporary is moved into it.
///
///     const auto digest = co_await asyncify([&] { return hash(block); }, pool);
///
/// Threading: `f` runs where `executor` decides; the coroutine resumes as after blocking().
///
/// Cancellation: if a stop is requested before `f` has started, it is not called, and the await
/// immediately throws std::system_error with std::errc::operation_canceled. The same happens if the
/// executor drops `f`. Once `f` has started it is waited for. A context that shuts down withdraws
/// functions that have not started, and blocks its thread until the others have returned.
template <class F, class E>
    requires detail::once_callable<std::decay_t<F>> && executor<std::remove_reference_t<E>>
detail::executor_function<std::decay_t<F>, E> asyncify(F&& f, E&& executor) {
    return {std::decay_t<F>(std::forward<F>(f)), std::forward<E>(executor)};
}

/// Produces a readable compiler error.
template <class A, class... Rest>
    requires(!detail::once_callable<std::decay_t<A>>)
void asyncify(A&&, Rest&&...)
    COIL_DELETE("asyncify takes a function; a task is awaited, or runs on(executor, f())");

} // namespace coil
