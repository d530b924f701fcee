#include "../opcode_kinds.hpp"
#include "../system_calls.hpp"
#include "attempt.hpp"
#include "epoll_backend_impl.hpp"

#include <algorithm>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// Non-blocking attempts to receive and send.

namespace coil::uring::detail {
namespace {

/// Whether io_uring accepts the socket for zero-copy sends; this backend copies the data.
bool can_zero_copy(int fd) noexcept {
    int domain = 0;
    ::socklen_t size = sizeof domain;
    return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain == AF_INET ||
           domain == AF_INET6;
}

/// A short read of a TCP stream means that no data is left; epoll reports later data if it is
/// already registered. (Except at the end of the stream, at urgent data, or if nothing was
/// consumed.)
bool is_drained(const descriptor_state& s, const epoll_request& r, ssize_t n,
                std::size_t asked) noexcept {
    constexpr std::uint32_t special = MSG_PEEK | MSG_OOB | MSG_ERRQUEUE;
    return n > 0 && static_cast<std::size_t>(n) < asked && s.what == descriptor_state::kind::tcp &&
           (s.interest & EPOLLIN) != 0 && !s.may_end_early && (r.entry.msg_flags & special) == 0;
}

/// Whether a receive that found nothing is at the end.
bool is_at_end(const epoll_request& r) noexcept {
    return (r.entry.msg_flags & MSG_DONTWAIT) == 0 && was_shut_down(*r.on);
}

bool is_truncated(const ::msghdr& message) noexcept {
    return (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
}

std::size_t message_size(const ::msghdr& message) noexcept {
    std::size_t n = 0;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
        n += message.msg_iov[i].iov_len;
    }
    return n;
}

/// Whether a multishot request ends with these bytes: they complete its total (`optlen`), or use
/// the last buffers of its group.
bool is_last(emulated_request& r, ssize_t n) noexcept {
    if (r.entry.optlen != 0) {
        r.entry.optlen -= std::min(static_cast<std::uint32_t>(n), r.entry.optlen);
        if (r.entry.optlen == 0) {
            return true;
        }
    }
    return r.bundles() && r.empties_group(static_cast<std::size_t>(n));
}

} // namespace

/// Whether the socket reports how much data it has.
bool epoll_backend::has_flag_for_more(state& s) noexcept {
    learn(s);
    return s.what == state::kind::tcp || s.what == state::kind::local_stream;
}

/// The flag for "the socket has more data". Only full reads, and those that leave the data, need to
/// query it.
std::uint32_t epoll_backend::nonempty(epoll_request& r, ssize_t n, std::size_t asked) noexcept {
    const bool peeks = (r.entry.msg_flags & MSG_PEEK) != 0;
    if (n < 0 || (static_cast<std::size_t>(n) < asked && !peeks)) {
        return 0;
    }
    state& s = *r.on;
    if (!has_flag_for_more(s)) {
        return 0;
    }
    int left = 0;
    return ::ioctl(s.fd, FIONREAD, &left) == 0 && left > 0 ? cqe_flag::sock_nonempty : 0;
}

/// The result of a receive for which no buffer could be selected. A stream that has used the last
/// buffer ends when more data arrives.
int epoll_backend::after_last_buffer(epoll_request& r, int error, int parts) noexcept {
    if (parts == 0) {
        return unless_no_socket(r.file, error);
    }
    const bool waits = error == -ENOBUFS && has_flag_for_more(*r.on) && !is_ready(r.file, POLLIN);
    return waits ? again_in : error;
}

/// The result of a simple receive (into one buffer), whose system call returned `n`.
int epoll_backend::received(epoll_request& r, ssize_t n, std::size_t asked) noexcept {
    if (n == -EAGAIN) {
        return is_at_end(r) ? 0 : would_block(r, again_in);
    }
    if (n < 0) {
        return failed(r, static_cast<int>(n));
    }
    if (is_drained(*r.on, r, n, asked)) {
        r.on->read_blocked = true;
    }
    r.result_flags |= nonempty(r, n, asked);
    return static_cast<int>(n);
}

/// Only TCP discards bytes with MSG_TRUNC. Other sockets fill all buffers of a bundle.
int epoll_backend::select_for_receive(epoll_request& r) noexcept {
    const std::uint32_t flags = r.entry.msg_flags;
    if ((flags & MSG_TRUNC) != 0 && r.bundles()) {
        learn(*r.on);
        if (r.on->what != state::kind::tcp) {
            r.entry.msg_flags &= ~static_cast<std::uint32_t>(MSG_TRUNC);
        }
    }
    const int error = select(r);
    r.entry.msg_flags = flags;
    return error;
}

int epoll_backend::try_receive(epoll_request& r) noexcept {
    state& s = *r.on;
    const int flags = static_cast<int>(r.entry.msg_flags) | MSG_DONTWAIT;
    const bool all = (r.entry.msg_flags & MSG_WAITALL) != 0;
    const bool tells = all && r.has(sqe_flag::io_link | sqe_flag::cqe_skip_success);
    for (int parts = 0;; ++parts) {
        if (const int error = select_for_receive(r); error != 0) {
            return after_last_buffer(r, error, parts);
        }
        const std::span<const ::iovec> data = r.data();
        ssize_t n = 0;
        std::size_t asked = 0;
        if (data.size() == 1 && r.done == 0 && !tells) [[likely]] {
            asked = data[0].iov_len;
            n = uninterrupted([&] { return ::recv(r.file, data[0].iov_base, asked, flags); });
        } else {
            const rest_of rest(r);
            ::msghdr message{};
            message.msg_iov = rest.data();
            message.msg_iovlen = static_cast<std::size_t>(rest.size());
            asked = rest.bytes();
            n = uninterrupted([&] { return ::recvmsg(r.file, &message, flags); });
            r.truncated = is_truncated(message);
        }
        if (n == -EAGAIN) {
            return is_at_end(r) ? 0 : would_block(r, again_in);
        }
        if (n < 0) {
            return failed(r, static_cast<int>(n));
        }
        const bool drained = is_drained(s, r, n, asked);
        if (drained) {
            s.read_blocked = true;
        }
        if (all && wants_more(r, n, asked)) {
            if (drained) {
                return would_block(r, again_in);
            }
            continue;
        }
        const int result = static_cast<int>(n) + static_cast<int>(r.done);
        const std::uint32_t more = nonempty(r, n, asked);
        if (!r.multishot() || n == 0 || is_last(r, n)) {
            r.result_flags |= more;
            return result;
        }
        // After a bundle of the requested length, other requests run first.
        const bool capped =
            r.bundles() && r.entry.len != 0 && static_cast<std::uint32_t>(result) >= r.entry.len;
        const int used = capped ? max_parts : parts;
        if (const int tried = post_part(r, result, used, drained, more); tried != next_part) {
            return tried;
        }
    }
}

int epoll_backend::try_receive_message(epoll_request& r) noexcept {
    const int flags = static_cast<int>(r.entry.msg_flags) | MSG_DONTWAIT;
    for (int parts = 0;; ++parts) {
        if (const int error = select(r); error != 0) {
            return after_last_buffer(r, error, parts);
        }
        ::msghdr message = r.header;
        ::iovec payload{};
        std::size_t front = 0;
        const rest_of rest(r);
        if (r.multishot()) {
            // Layout of the buffer: recvmsg_out, name, control data, payload.
            payload = r.data()[0];
            front = sizeof(recvmsg_out) + message.msg_namelen + message.msg_controllen;
            if (payload.iov_len < front) {
                unselect(r);
                return -EFAULT;
            }
            auto* const base = static_cast<std::byte*>(payload.iov_base);
            message.msg_name = base + sizeof(recvmsg_out);
            message.msg_control = base + sizeof(recvmsg_out) + message.msg_namelen;
            payload = {base + front, payload.iov_len - front};
            message.msg_iov = &payload;
            message.msg_iovlen = 1;
        } else {
            message.msg_iov = rest.data();
            message.msg_iovlen = static_cast<std::size_t>(rest.size());
        }
        ssize_t n = uninterrupted([&] { return ::recvmsg(r.file, &message, flags); });
        if (n == -EAGAIN && is_at_end(r)) {
            n = 0;
            message.msg_namelen = 0;
            message.msg_controllen = 0;
            message.msg_flags = 0;
        }
        if (n == -EAGAIN) {
            return would_block(r, again_in);
        }
        if (n < 0) {
            return failed(r, static_cast<int>(n));
        }
        r.truncated = is_truncated(message);
        // Each part updates the caller's header, because a cancellation may prevent further parts.
        const ::msghdr asked_for = r.header;
        r.header.msg_namelen = message.msg_namelen;
        r.header.msg_controllen = message.msg_controllen;
        r.header.msg_flags = message.msg_flags;
        finish_message(r, static_cast<int>(n));
        r.header = asked_for;
        if (!r.multishot() && !r.ends_with_message() && wants_more(r, n, rest.bytes())) {
            continue;
        }
        // With MSG_TRUNC, a multishot request reports the received size, not the full size.
        const int here =
            r.multishot() ? static_cast<int>(std::min(static_cast<std::size_t>(n), payload.iov_len))
                          : static_cast<int>(n);
        const int result = static_cast<int>(front) + here + static_cast<int>(r.done);
        const std::uint32_t more = nonempty(r, n, message_size(message));
        if (!r.multishot()) {
            r.result_flags |= more;
            return result;
        }
        if (n == 0) { // the end, or an empty datagram
            return result;
        }
        if (const int tried = post_part(r, result, parts, false, more); tried != next_part) {
            return tried;
        }
    }
}

bool epoll_backend::may_send_now(const sqe& entry) noexcept {
    const state* const s = descriptors_.find(entry.fd);
    return s != nullptr && !s->closing && !s->write_blocked && s->writers.empty();
}

int epoll_backend::try_send(epoll_request& r) noexcept {
    state& s = *r.on;
    const sqe& e = r.entry;
    const int flags = static_cast<int>(e.msg_flags) | MSG_DONTWAIT | MSG_NOSIGNAL;
    const bool is_message = has_message_header(r.op());
    if ((r.op() == opcode::send_zc || r.op() == opcode::sendmsg_zc) && !can_zero_copy(r.file)) {
        return -EOPNOTSUPP;
    }
    if (const int error = select(r); error != 0) {
        return unless_no_socket(r.file, error);
    }
    for (;;) {
        const std::span<const ::iovec> data = r.data();
        ssize_t n = 0;
        std::size_t asked = 0;
        if (!is_message && data.size() == 1 && r.done == 0) [[likely]] {
            asked = data[0].iov_len;
            n = uninterrupted([&] {
                return e.addr_len == 0 ? ::send(r.file, data[0].iov_base, asked, flags)
                                       : ::sendto(r.file, data[0].iov_base, asked, flags,
                                                  pointer<const ::sockaddr>(e.addr2), e.addr_len);
            });
        } else {
            const rest_of rest(r);
            ::msghdr message = message_of(r);
            message.msg_iov = rest.data();
            message.msg_iovlen = static_cast<std::size_t>(rest.size());
            asked = rest.bytes();
            n = uninterrupted([&] { return ::sendmsg(r.file, &message, flags); });
        }
        if (n == -EAGAIN) {
            // A datagram's path may be full although the socket has space, and epoll does not
            // report when that changes.
            learn(s);
            const bool is_far = s.what == state::kind::datagram && is_ready(r.file, POLLOUT);
            return would_block(r, is_far ? by_unbounded_worker : again_out);
        }
        if (n < 0) {
            return failed(r, static_cast<int>(n));
        }
        if (wants_more(r, n, asked)) {
            continue;
        }
        const int result = static_cast<int>(n) + static_cast<int>(r.done);
        // Further buffers of the group follow in separate bundles, unless the request had to wait.
        if (!r.bundles() || result <= 0 || r.waited ||
            r.empties_group(static_cast<std::size_t>(result)) || !part(r, result)) {
            return result;
        }
        r.done = 0;
        r.entry.len = 0; // as on Linux, only the first bundle is limited
        if (const int error = select(r); error != 0) {
            return error;
        }
    }
}

/// The header of any kind of send, without its data. Control data goes with the first part.
::msghdr epoll_backend::message_of(const epoll_request& r) noexcept {
    ::msghdr message{};
    if (has_message_header(r.op())) {
        message = r.header;
        if (r.done != 0) {
            message.msg_controllen = 0;
        }
    } else if (r.entry.addr_len != 0) {
        message.msg_name = pointer<void>(r.entry.addr2);
        message.msg_namelen = r.entry.addr_len;
    }
    return message;
}

} // namespace coil::uring::detail
