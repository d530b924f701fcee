#pragma once

#include <coil/context/operation.hpp>
#include <coil/context/own_rings.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

// Completions for rings that are not coil's.

namespace coil {

namespace detail {

class ring_message_element : public io_element {
public:
    using io_element::io_element;

    ring_entry& arm() noexcept {
        if (own_ring::is_one(entry_.request.fd)) {
            entry_.request.fd = -1;
        }
        return entry_;
    }
};

} // namespace detail

namespace io {

/// Posts the completion {user_data, res} to another ring: 0; -EBADFD when `ring_fd` is no ring,
/// -EOVERFLOW or -ENOMEM when that one has no room. For rings that code of yours reads itself: a
/// coil::uring::ring, or one of liburing, of this process or another. A coil context finds its
/// coroutines by user_data, so the ring of an io_context of this process takes no messages:
/// -EBADF. To run something there, use io_context::spawn. An io_context's ring of another process
/// must not be passed.
///
/// IORING_OP_MSG_RING (Linux 5.18); older kernels: -EOPNOTSUPP.
inline io_awaitable<detail::ring_message_element> msg_ring(int ring_fd, unsigned res,
                                                           std::uint64_t user_data) noexcept {
    return io_awaitable<detail::ring_message_element>(
        detail::ring_message_element(uring::prep::msg_ring(ring_fd, res, user_data)));
}

} // namespace io

} // namespace coil
