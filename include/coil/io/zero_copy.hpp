#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/zero_copy_element.hpp>
#include <coil/io/registered_buffers.hpp>
#include <coil/uring/prep.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <sys/socket.h>

// Zero-copy sends. The kernel posts two completions: the result, and a notification when the
// network stack no longer uses the memory. The await returns after the notification, so the buffer
// may be reused as after send(2). With TCP the notification follows the peer's acknowledgement: the
// await takes at least a round trip, and if the peer is unreachable it lasts until TCP gives up,
// even if it is cancelled. Zero-copy pays off for buffers of about ten kilobytes or more with
// several sends in flight; the loopback interface copies anyway.
//
// Sockets that do not support it (AF_UNIX) fail with -EOPNOTSUPP.
//
// `zc_flags` are uring::recvsend_flag::* (IORING_RECVSEND_*, IORING_SEND_ZC_*); any other flag
// fails with -EINVAL:
// - poll_first: the socket is known to be full, so wait for space before the first try;
// - zc_report_usage (Linux 6.2; before, -EINVAL): the notification says whether the data was copied
//   after all. The await's only result is the number of bytes sent, so this report is not visible;
//   the flag has no effect and is accepted for compatibility with code written for other rings.

namespace coil::io {

/// The awaitable of a zero-copy call; co_await returns an io_result.
using zero_copy_operation = io_awaitable<detail::zero_copy_element>;

/// send(2) without a copy (IORING_OP_SEND_ZC, Linux 6.0; before, with a copy): bytes sent, perhaps
/// fewer than requested. In the middle of a `&&` chain coil adds MSG_WAITALL: the next call starts
/// when everything has been sent, without waiting for the notification, and a send that remains
/// short ends the chain.
inline zero_copy_operation send_zc(descriptor fd, const_buffer buf COIL_LIFETIMEBOUND,
                                   int flags = 0, unsigned zc_flags = 0) noexcept {
    return zero_copy_operation(detail::zero_copy_element(detail::request_on(
        fd, uring::prep::send_zc(fd.number(), buf.data(), buf.size(), flags | MSG_NOSIGNAL,
                                 detail::zero_copy_flags(zc_flags)))));
}

/// Rejects a length in place of the flags: the length is part of the buffer.
template <std::same_as<std::size_t> Flags>
zero_copy_operation send_zc(descriptor fd, const_buffer buf COIL_LIFETIMEBOUND, Flags flags,
                            unsigned zc_flags = 0) noexcept {
    static_assert(detail::are_flags<Flags>,
                  "the argument after the buffer is the flags; the length is part of the buffer");
    return send_zc(fd, buf, static_cast<int>(flags), zc_flags);
}

/// The same from a registered buffer, which also saves pinning the pages for each call. (A
/// template, so that `{pointer, bytes}` selects the overload above.)
template <std::same_as<registered_buffer> Buffer>
zero_copy_operation send_zc(descriptor fd, Buffer buf, int flags = 0,
                            unsigned zc_flags = 0) noexcept {
    return zero_copy_operation(detail::zero_copy_element(detail::request_on(
        fd, uring::prep::send_zc_fixed(fd.number(), buf.data(), buf.size(), flags | MSG_NOSIGNAL,
                                       buf.index(), detail::zero_copy_flags(zc_flags)))));
}

/// sendmsg(2) without a copy (IORING_OP_SENDMSG_ZC, Linux 6.1; before, with a copy): bytes sent.
/// The header and everything it refers to must outlive the await.
inline zero_copy_operation sendmsg_zc(descriptor fd, const ::msghdr* message, int flags = 0,
                                      unsigned zc_flags = 0) noexcept {
    return zero_copy_operation(detail::zero_copy_element(
        detail::request_on(fd, uring::prep::sendmsg_zc(fd.number(), message, flags | MSG_NOSIGNAL,
                                                       detail::zero_copy_flags(zc_flags)))));
}

} // namespace coil::io
