#pragma once

#include <coil/context/this_context.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/interop/detail/awaitable_sender.hpp>
#include <coil/interop/sender_vocabulary.hpp>

#include <type_traits>
#include <utility>

namespace coil {

/// A sender that awaits a task or another awaitable, on a context:
///
///     stdexec::sync_wait(coil::as_sender(ctx, fetch(url)) | stdexec::then(parse));
///
/// Without a context argument, the await runs on the context of the thread that starts the
/// operation; if that thread runs no context, the program terminates with a message. The awaitable
/// is moved into the sender, which can be connected once.
///
/// Completion: on the context's thread, with set_value() and the result of the await, with
/// set_error() and a std::exception_ptr, or, if a stop was requested through the receiver's token
/// and the await throws std::errc::operation_canceled, with set_stopped(). An io_result of
/// -ECANCELED is a value. A shutdown of the context ends the task like any other; if that destroys
/// its frame, the operation completes with set_stopped() during the shutdown. If the task cannot be
/// created, start() itself calls set_error().
template <class V = default_vocabulary, awaitable A>
    requires(!std::is_lvalue_reference_v<A>)
[[nodiscard]] detail::awaitable_sender<V, A> as_sender(A&& awaited) {
    return {nullptr, std::forward<A>(awaited)};
}
template <class V = default_vocabulary, awaitable A>
    requires(!std::is_lvalue_reference_v<A>)
[[nodiscard]] detail::awaitable_sender<V, A> as_sender(io_context& context, A&& awaited) {
    return {&context, std::forward<A>(awaited)};
}

} // namespace coil
