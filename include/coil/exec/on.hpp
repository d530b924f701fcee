#pragma once

#include <coil/core/detail/kept_function.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/any_executor.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/on_awaiter.hpp>
#include <coil/exec/executor.hpp>

#include <utility>

namespace coil {

/// Runs a task on an executor and returns its result or throws its exception:
///
///     const auto digest = co_await on(pool, hash(file));   // resumes here
///
/// On a context this is like spawning the task there and joining it, but the task may refer to the
/// caller's objects, because the caller waits until it has ended.
///
/// Threading: the task runs on `ex`. The caller resumes on its own context, on the executor that
/// runs it, or, if it has neither, on the thread on which the task ended. Everything the caller did
/// before happens before the task, and the task happens before everything the caller does
/// afterwards. `ex` must outlive the task.
///
/// Cancellation: the task inherits the caller's stop token, and is always waited for. If a stop is
/// requested while the task is queued on an executor that is not a context, it is not started, and
/// the await throws std::system_error with std::errc::operation_canceled. If the caller's context
/// shuts down, the task is asked to stop and the shutdown waits for its end; a task that has not
/// started never starts.
///
/// Errors: if `ex` was shut down before the task started, or is a context that stops, the await
/// throws std::system_error with std::errc::operation_canceled. Exceptions thrown by the executor
/// propagate. If the caller's own executor was shut down meanwhile, the await also throws
/// std::errc::operation_canceled, and an exception of the task is reported like that of a detached
/// task.
template <executor E, class T>
detail::on_awaitable<T> on(E& ex, task<T> work COIL_LIFETIMEBOUND) noexcept {
    return {detail::ref_to(ex), std::move(work)};
}
template <class T>
detail::on_awaitable<T> on(const any_executor& ex, task<T> work COIL_LIFETIMEBOUND) noexcept {
    return {detail::ref_to(ex), std::move(work)};
}

/// Produce readable compiler errors.
template <class E, class Work>
    requires(!detail::derived_from_task<Work> && !detail::derived_from_task<E>)
detail::on_awaitable<void> on(E&&, Work&&)
    COIL_DELETE("on takes a task: call the function, on(executor, f())");
template <class Work>
detail::on_awaitable<void> on(Work&&)
    COIL_DELETE("on takes an executor and a task: on(executor, f())");
template <class T, class E>
detail::on_awaitable<T> on(task<T>, E&&)
    COIL_DELETE("the executor comes first: on(executor, work)");

} // namespace coil
