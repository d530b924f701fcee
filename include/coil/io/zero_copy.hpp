#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/registered_buffers.hpp>
#include <coil/uring/prep.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <sys/socket.h>

// Sending without a copy. The kernel answers twice: what was sent, and, when the network has no use
// for the memory any more, that the buffer is free. The await returns after the second, so the
// buffer is the caller's again as after send(2). With TCP that is when the peer has acknowledged
// the data: such an await takes at least a round trip, and one to a peer that has gone away lasts
// until TCP gives up, cancelled or not. It pays for buffers of some ten kilobytes and more, with
// several in flight; the loopback interface copies anyway.
//
// Sockets that cannot do it (AF_UNIX) give -EOPNOTSUPP.
//
// `zc_flags` are uring::recvsend_flag::* (IORING_RECVSEND_*, IORING_SEND_ZC_*), any other gives
// -EINVAL:
// - poll_first: the socket is known to be full, so wait for room before the first try;
// - zc_report_usage (Linux 6.2; before, -EINVAL): the kernel's second answer says whether the data
//   was copied after all. The await has one result, what was sent, so nobody gets to see it: the
//   flag changes nothing, and is taken for the sake of what is written for other rings.

namespace coil {

namespace detail {

/// A call that the kernel refuses to leave without a completion, wherever in a chain it stands.
class zero_copy_element : public io_element, zero_copy_node {
public:
    static constexpr bool needs_result = true;

    using io_element::io_element;

    ring_entry& arm() noexcept {
        event_loop& loop = required_loop();
        const auto call = static_cast<uring::opcode>(entry_.request.opcode);
        if (!loop.ring().supports(call)) [[unlikely]] {
            copy_instead();
        } else {
            loop.zero_copies().insert(*this, entry_);
        }
        return entry_;
    }

private:
    void copy_instead() noexcept;
};

/// What a caller may ask for, or a flag that the kernel refuses: the others say that the memory is
/// something else than it is.
constexpr std::uint16_t zero_copy_flags(unsigned flags) noexcept {
    constexpr unsigned taken =
        uring::recvsend_flag::poll_first | uring::recvsend_flag::zc_report_usage;
    constexpr std::uint16_t refused = 1U << 15;
    return (flags & ~taken) == 0 ? static_cast<std::uint16_t>(flags) : refused;
}

} // namespace detail

namespace io {

/// What a zero-copy call gives: co_await gives an io_result.
using zero_copy_operation = io_awaitable<detail::zero_copy_element>;

/// send(2) without a copy (IORING_OP_SEND_ZC, Linux 6.0; before, with one): bytes sent, perhaps
/// fewer than asked. In the middle of a `&&` chain all is sent or the chain ends; what follows does
/// not wait for the buffer.
inline zero_copy_operation send_zc(descriptor fd, const_buffer buf, int flags = 0,
                                   unsigned zc_flags = 0) noexcept {
    return zero_copy_operation(detail::zero_copy_element(detail::request_on(
        fd, uring::prep::send_zc(fd.number(), buf.data(), buf.size(), flags | MSG_NOSIGNAL,
                                 detail::zero_copy_flags(zc_flags)))));
}

/// No call: the length is part of the buffer.
template <std::same_as<std::size_t> Flags>
zero_copy_operation send_zc(descriptor fd, const_buffer buf, Flags flags,
                            unsigned zc_flags = 0) noexcept {
    static_assert(detail::are_flags<Flags>,
                  "what follows the buffer are flags; the length is part of the buffer");
    return send_zc(fd, buf, static_cast<int>(flags), zc_flags);
}

/// The same out of a registered buffer, which also saves pinning the pages each time. (A template,
/// so that `{pointer, bytes}` is the memory.)
template <std::same_as<registered_buffer> Buffer>
zero_copy_operation send_zc(descriptor fd, Buffer buf, int flags = 0,
                            unsigned zc_flags = 0) noexcept {
    return zero_copy_operation(detail::zero_copy_element(detail::request_on(
        fd, uring::prep::send_zc_fixed(fd.number(), buf.data(), buf.size(), flags | MSG_NOSIGNAL,
                                       buf.index(), detail::zero_copy_flags(zc_flags)))));
}

/// sendmsg(2) without a copy (IORING_OP_SENDMSG_ZC, Linux 6.1; before, with one): bytes sent. The
/// header and what it names must outlive the await.
inline zero_copy_operation sendmsg_zc(descriptor fd, const ::msghdr* message, int flags = 0,
                                      unsigned zc_flags = 0) noexcept {
    return zero_copy_operation(detail::zero_copy_element(
        detail::request_on(fd, uring::prep::sendmsg_zc(fd.number(), message, flags | MSG_NOSIGNAL,
                                                       detail::zero_copy_flags(zc_flags)))));
}

} // namespace io

} // namespace coil
