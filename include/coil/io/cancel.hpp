#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/eager.hpp>
#include <coil/io/multishot.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>

// Cancelling, and changing, what is under way (IORING_OP_ASYNC_CANCEL, IORING_OP_POLL_REMOVE). What
// is cancelled ends with -ECANCELED, or with its real result if that came first, at its own await.
// It must be of the same context. These calls are never held back by io_context_options::
// max_in_flight or an io::drain. Besides these a task's stop token, timeout() and destruction
// cancel.

namespace coil {

namespace detail {

/// The request is made when the await begins: by then the target may have completed.
class cancel_element : public io_element {
public:
    explicit cancel_element(io_wait& target) noexcept
        : io_element(uring::prep::nop()), target_(&target) {}

    ring_entry& arm() noexcept {
        cancelled_ = target_->cancel_here();
        // With the flag it does not fail when there is nothing left, and does not end a chain.
        entry_.request =
            uring::prep::cancel(target_->first_key(), cancelled_ ? uring::cancel_flag::all : 0);
        return entry_;
    }
    [[nodiscard]] io_result result() const noexcept {
        // Cancelled already: whether there is still something to be found does not matter.
        return io_result(cancelled_ && entry_.result != -ECANCELED ? 0 : entry_.result);
    }

private:
    io_wait* target_;
    bool cancelled_ = false;
};

/// Does not count what belongs to the context itself.
class cancel_all_element : public io_element {
public:
    static constexpr bool needs_result = true;

    cancel_all_element() noexcept : io_element(uring::prep::cancel_any()) {}

    ring_entry& arm() noexcept {
        own_ = required_loop().is_watching() ? 1 : 0;
        return entry_;
    }
    [[nodiscard]] io_result result() const noexcept {
        return io_result(entry_.result > 0 ? entry_.result - own_ : entry_.result);
    }

private:
    int own_ = 0;
};

} // namespace detail

namespace io {

/// Cancels an eager operation: 0; -ENOENT when it is complete; -EALREADY when a worker is executing
/// it and it may still end either way. Of a chain, the call whose turn it is, and with it the rest:
/// 0, or -ENOENT when it is complete. `op` must outlive the await.
template <detail::element E>
io_awaitable<detail::cancel_element> cancel(eager_operation<E>& op) noexcept {
    return io_awaitable<detail::cancel_element>(detail::cancel_element(op.wait()));
}

/// Cancels everything that this context does with a descriptor, multishot streams too: how many
/// (Linux 5.19). Operations that wait for room (back-pressure) are not found.
inline operation cancel(descriptor fd) noexcept {
    std::uint32_t flags = uring::cancel_flag::all;
    if (fd.is_direct()) {
        flags |= uring::cancel_flag::fd_fixed;
    }
    return detail::make_operation(
        detail::request_in_table_of(fd, uring::prep::cancel_fd(fd.number(), flags)));
}

/// Cancels everything that this context does, the waits of other tasks included: how many (Linux
/// 5.19). Sleeps are not ring work and go on; operations that wait for room are not found.
inline io_awaitable<detail::cancel_all_element> cancel_all() noexcept {
    return io_awaitable<detail::cancel_all_element>(detail::cancel_all_element());
}

/// Ends a poll that eager() started: 0, -ENOENT when it is complete.
template <detail::element E>
operation poll_remove(eager_operation<E>& poll) noexcept {
    return detail::make_operation(uring::prep::poll_remove(poll.key()));
}

/// Ends the request of a poll_multishot stream, whose next() then gives -ECANCELED: 0, -ENOENT when
/// it is not under way.
inline operation poll_remove(poll_stream& stream) noexcept {
    return detail::make_operation(uring::prep::poll_remove(stream.key()));
}

/// Changes the events that a poll waits for (Linux 5.13): 0, -ENOENT when it is complete.
template <detail::element E>
operation poll_update(eager_operation<E>& poll, unsigned events) noexcept {
    return detail::make_operation(uring::prep::poll_update(poll.key(), events));
}

/// As above; later requests of the stream ask for them as well.
inline operation poll_update(poll_stream& stream, unsigned events) noexcept {
    stream.set_events(events);
    return detail::make_operation(uring::prep::poll_update(stream.key(), events));
}

} // namespace io

} // namespace coil
