#include "epoll_backend_impl.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

// Attempts: one non-blocking try of an operation. Here: dispatch, the type of a descriptor, and
// what all attempts have in common.

namespace coil::uring::detail {
int epoll_backend::attempt(epoll_request& r) noexcept {
    switch (r.op()) {
    case opcode::recv:
        return try_receive(r);
    case opcode::recvmsg:
        return try_receive_message(r);
    case opcode::send:
    case opcode::sendmsg:
    case opcode::send_zc:
    case opcode::sendmsg_zc:
        return try_send(r);
    case opcode::read:
    case opcode::readv:
    case opcode::read_fixed:
    case opcode::readv_fixed:
    case opcode::read_multishot:
        return try_read(r);
    case opcode::write:
    case opcode::writev:
    case opcode::write_fixed:
    case opcode::writev_fixed:
        return try_write(r);
    case opcode::accept:
        return try_accept(r);
    case opcode::connect:
        return try_connect(r);
    case opcode::poll_add:
        return try_poll(r);
    case opcode::epoll_wait:
        return try_epoll_wait(r);
    case opcode::waitid:
        return try_waitid(r);
    default:
        return -EOPNOTSUPP;
    }
}

// ---- the type of a descriptor

void epoll_backend::learn(state& s) noexcept {
    if (s.what != state::kind::unknown) {
        return;
    }
    struct ::stat status{};
    if (::fstat(s.fd, &status) != 0) {
        return;
    }
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) {
        const int flags = ::fcntl(s.fd, F_GETFL);
        s.device = status.st_dev;
        s.what =
            flags >= 0 && (flags & O_DIRECT) != 0 ? state::kind::direct_file : state::kind::file;
    } else if (S_ISSOCK(status.st_mode)) {
        learn_socket(s);
    } else {
        s.what = state::kind::other;
    }
}

void epoll_backend::learn_socket(state& s) noexcept {
    int type = 0;
    int protocol = 0;
    ::socklen_t size = sizeof type;
    if (::getsockopt(s.fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
        return;
    }
    if (type != SOCK_STREAM && type != SOCK_SEQPACKET) {
        s.what = state::kind::datagram;
    } else if (::getsockopt(s.fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
               protocol == IPPROTO_TCP) {
        s.what = state::kind::tcp;
    } else {
        int domain = 0;
        const bool is_local = type == SOCK_STREAM &&
                              ::getsockopt(s.fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                              domain == AF_UNIX;
        s.what = is_local ? state::kind::local_stream : state::kind::connection;
    }
}

/// Re-checks before an action that would be wrong on a pipe: the number may have been reused.
bool epoll_backend::is_file(state& s) noexcept {
    if (s.is_known_file()) {
        struct ::stat status{};
        if (s.what != state::kind::direct_file && ::fstat(s.fd, &status) == 0 &&
            S_ISREG(status.st_mode) && status.st_dev == s.device) {
            return true; // another file on the same file system is equivalent
        }
        s.what = state::kind::unknown;
    }
    learn(s);
    return s.is_known_file();
}

/// MSG_WAITALL: whether to continue with the remaining bytes.
bool epoll_backend::wants_more(epoll_request& r, ssize_t n, std::size_t asked) noexcept {
    if ((r.entry.msg_flags & MSG_WAITALL) == 0 || n <= 0 || static_cast<std::size_t>(n) >= asked) {
        return false;
    }
    learn(*r.on);
    if (r.on->what != state::kind::tcp && r.on->what != state::kind::local_stream &&
        r.on->what != state::kind::connection) {
        return false;
    }
    r.done += static_cast<std::uint32_t>(n);
    return true;
}

// ---- results of an attempt

/// The outcome of an attempt that finds no data, or no more of it, for now.
int epoll_backend::would_block(epoll_request& r, int again) noexcept {
    keep_buffer(r);
    return again;
}

/// Called for a request that is going to wait. It keeps a selected buffer that is partly filled or
/// that a send has taken, and returns any other to its group.
void epoll_backend::keep_buffer(epoll_request& r) noexcept {
    if (r.done != 0 || (r.op() == opcode::send && !r.bundles())) {
        hold_selected(r);
    } else {
        unselect(r);
    }
}

/// An error is reported only if nothing was transferred before it.
int epoll_backend::failed(const epoll_request& r, int error) noexcept {
    return r.done != 0 ? static_cast<int>(r.done) : error;
}

/// Posts one result of a multishot request, the `parts`th of this attempt. Returns next_part, or
/// the result of the attempt.
int epoll_backend::post_part(epoll_request& r, int result, int parts, bool drained,
                             std::uint32_t flags) noexcept {
    if (!part(r, result, flags)) {
        r.result_flags |= flags;
        return result;
    }
    if (drained) {
        return again_in;
    }
    if (parts < max_parts) {
        return next_part;
    }
    again_soon(*r.on);
    return again_in;
}

} // namespace coil::uring::detail
