#pragma once

#include <coil/context/detail/own_rings.hpp>
#include <coil/context/operation.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

// Completions posted to rings outside of coil.

namespace coil {

namespace detail {

class ring_message_element : public io_element {
public:
    using io_element::io_element;

    sqe_slot& arm() noexcept {
        if (own_ring::is_one(entry_.request.fd)) {
            entry_.request.fd = -1;
        }
        return entry_;
    }
};

} // namespace detail

namespace io {

/// Posts the completion {user_data, res} to another ring: 0; -EBADFD if `ring_fd` is not a ring;
/// -EOVERFLOW or -ENOMEM if that ring has no space. It is meant for rings whose completions the
/// program reads itself: a coil::uring::ring or a liburing ring, of this process or another. An
/// io_context interprets user_data as the address of one of its operations, so the ring of an
/// io_context of this process is refused with -EBADF (to run something there, use
/// io_context::spawn). Never pass the ring of an io_context of another process.
///
/// IORING_OP_MSG_RING (Linux 5.18); older kernels: -EOPNOTSUPP.
inline io_awaitable<detail::ring_message_element> msg_ring(int ring_fd, unsigned res,
                                                           std::uint64_t user_data) noexcept {
    return io_awaitable<detail::ring_message_element>(
        detail::ring_message_element(uring::prep::msg_ring(ring_fd, res, user_data)));
}

} // namespace io

} // namespace coil
