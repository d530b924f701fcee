#pragma once

#include <coil/context/detail/move_awaiter.hpp>
#include <coil/context/io_context.hpp>

namespace coil {

/// Moves the calling task to another context: after `co_await resume_on(ctx)` the task, and its
/// awaiters, run on the thread of `ctx` until it moves again. Does nothing on `ctx` itself.
///
///     co_await resume_on(other);      // compute there
///     const auto sum = add(numbers);
///     co_await resume_on(home);
///
/// Threading: everything before it happens before everything after it. Objects that belong to the
/// context that is left must not be awaited elsewhere: eager operations, multishot streams and
/// direct descriptors. Plain descriptors and join handles move freely.
///
/// While it is elsewhere the task does not count as work of the context that it left, whose run()
/// may return; coil::run() and block_on() wait for it wherever it is. A coroutine of another type
/// that awaits a task must not be destroyed while that task moves, and must not be awaited by a
/// task of the context that is left: coil does not know the root of its tree.
///
/// Cancellation: a stop request does not prevent the move. A shutdown of `ctx` destroys a task that
/// is on its way to it. A context must outlive the tasks that move to it.
///
/// A child of when_all, when_any, scope or timeout(task, d) cannot leave its parent's context,
/// because it may refer to the parent's frame: moving throws std::logic_error. Spawn a task on the
/// other context instead, ctx.spawn(work), and make its join_handle the child.
inline detail::move_awaiter resume_on(io_context& context) noexcept {
    return detail::move_awaiter(context.loop());
}

} // namespace coil
