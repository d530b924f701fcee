#pragma once

#include <coil/context/resume_on.hpp>
#include <coil/exec/any_executor.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/hop_awaiter.hpp>
#include <coil/exec/executor.hpp>

namespace coil {

/// Like resume_on(), but always goes through the executor's queue: even if the task runs there
/// already, it lets queued work run first.
template <executor E>
detail::hop_awaiter schedule(E& ex) noexcept {
    return {detail::ref_to(ex), true};
}
inline detail::hop_awaiter schedule(const any_executor& ex) noexcept {
    return {detail::ref_to(ex), true};
}

/// Moves the calling task to an executor: after `co_await resume_on(ex)` the task, and its
/// awaiters, run there until it moves again. Does nothing if the task already runs there. (If the
/// executor is not one of coil's, this is known only after one of coil's awaits has moved the task
/// there.)
///
///     co_await resume_on(pool);       // compute there
///     const auto sum = add(numbers);
///     co_await resume_on(context);    // where its I/O is
///
/// To run something there and return with the result, prefer `on(ex, task)`.
///
/// Threading: everything before it happens before everything after it. On an executor that is not a
/// context, operations of coil::io and other awaits that need a context terminate the program with
/// a message. Tasks, async_tasks, on(), schedule() and resume_on() may be awaited there; the task
/// then resumes on the executor, which must live until then.
///
/// While the task is elsewhere, it does not count as work of the context that it left, whose run()
/// may return; coil::run() and block_on() wait for it wherever it is. A shutdown of that context
/// does not destroy the task: it ends by itself.
///
/// Errors: if the executor was shut down, the task continues on the context or executor that it
/// came from (an executor must still exist), and the await throws std::system_error with
/// std::errc::operation_canceled. If the context that it came from has ended or does not run, the
/// task continues on the thread on which the executor drops it, outside of any context. A context
/// that ends destroys tasks that are moving to it.
///
/// Exceptions of the executor propagate, for example if no thread can be created. A child of
/// when_all, when_any, scope or timeout(task, d) cannot leave its parent's context:
/// std::logic_error.
///
/// Cancellation: a stop request does not prevent the move.
///
/// In an async_task the move has no lasting effect: the coroutine returns to its own executor
/// before it continues.
template <executor E>
detail::hop_awaiter resume_on(E& ex) noexcept {
    return {detail::ref_to(ex), false};
}
inline detail::hop_awaiter resume_on(const any_executor& ex) noexcept {
    return {detail::ref_to(ex), false};
}

/// Produce readable compiler errors.
detail::hop_awaiter resume_on()
    COIL_DELETE("pass the context or executor on which to continue: resume_on(pool)");
template <class E>
    requires(!executor<std::remove_cvref_t<E>> && !std::is_convertible_v<E, any_executor>)
detail::hop_awaiter resume_on(E&&)
    COIL_DELETE("pass the context or executor on which to continue: resume_on(pool)");

} // namespace coil
