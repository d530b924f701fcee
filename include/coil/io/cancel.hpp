#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/cancel_element.hpp>
#include <coil/io/eager.hpp>
#include <coil/io/multishot.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

// Cancelling and modifying operations in flight (IORING_OP_ASYNC_CANCEL, IORING_OP_POLL_REMOVE).
// The target completes at its own await with -ECANCELED, or with its real result if that came
// first. It must belong to the same context. Outside of a chain, these calls are not delayed by
// io_context_options::max_in_flight or an io::drain. Operations are also cancelled by a task's stop
// token, by timeout() and by destruction.

namespace coil::io {

/// Cancels an eager operation. Returns 0; -ENOENT if the operation is complete; -EALREADY if a
/// worker is executing it, in which case it may still succeed. For a chain, cancels the call in
/// progress and thereby the rest: 0, or -ENOENT if the chain is complete. `op` must outlive the
/// await.
template <detail::element E>
io_awaitable<detail::cancel_element> cancel(eager_operation<E>& op) noexcept {
    return io_awaitable<detail::cancel_element>(detail::cancel_element(op.wait()));
}

/// Cancels all of this context's operations on a descriptor, including multishot streams, and
/// returns their number (Linux 5.19, for a direct descriptor 6.0). Operations queued by
/// back-pressure are not found.
inline operation cancel(descriptor fd) noexcept {
    std::uint32_t flags = uring::cancel_flag::all;
    if (fd.is_direct()) {
        flags |= uring::cancel_flag::fd_fixed;
    }
    return detail::make_operation(
        detail::request_in_table_of(fd, uring::prep::cancel_fd(fd.number(), flags)));
}

/// Cancels all of this context's operations, including those of other tasks, and returns their
/// number (Linux 5.19). Sleeps are not ring operations and continue; operations queued by
/// back-pressure are not found.
inline io_awaitable<detail::cancel_all_element> cancel_all() noexcept {
    return io_awaitable<detail::cancel_all_element>(detail::cancel_all_element());
}

/// Cancels a poll started by eager(). Returns 0; -ENOENT if it is complete; -EALREADY if it is just
/// completing.
template <detail::element E>
operation poll_remove(eager_operation<E>& poll) noexcept {
    return detail::make_operation(uring::prep::poll_remove(poll.key()));
}

/// Cancels the request of a poll_multishot stream, whose next() then returns -ECANCELED. Returns 0;
/// -ENOENT if no request is in flight; -EALREADY if it is just posting an event.
inline operation poll_remove(poll_stream& stream) noexcept {
    return detail::make_operation(uring::prep::poll_remove(stream.key()));
}

/// Changes the events of a poll started by eager() (Linux 5.13). Returns 0; -ENOENT if it is
/// complete; -EALREADY if it is just completing.
template <detail::element E>
operation poll_update(eager_operation<E>& poll, unsigned events) noexcept {
    return detail::make_operation(uring::prep::poll_update(poll.key(), events));
}

/// The same for a poll_multishot stream, whose later requests also use the new events.
inline operation poll_update(poll_stream& stream, unsigned events) noexcept {
    stream.set_events(events);
    return detail::make_operation(uring::prep::poll_update(stream.key(), events));
}

} // namespace coil::io
