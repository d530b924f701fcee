#include "../system_calls.hpp"
#include "attempt.hpp"
#include "epoll_backend_impl.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

// Non-blocking attempts to accept and connect.

namespace coil::uring::detail {

/// accept4(2) has no counterpart of MSG_DONTWAIT, so the socket is made non-blocking.
int epoll_backend::try_accept(epoll_request& r) noexcept {
    const int flags = ::fcntl(r.file, F_GETFL);
    if (flags < 0) {
        return -EBADF;
    }
    if ((flags & O_NONBLOCK) == 0) {
        // Only for listening sockets: the flags of other descriptors do not change.
        int listens = 0;
        ::socklen_t size = sizeof listens;
        if (::getsockopt(r.file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) {
            return -errno;
        }
        if (listens == 0) {
            return -errno_of_accept(r.file);
        }
        if (::fcntl(r.file, F_SETFL, flags | O_NONBLOCK) != 0) {
            return -errno;
        }
    }
    for (int parts = 0;; ++parts) {
        auto* const address = pointer<::sockaddr>(r.entry.addr);
        auto* const size = pointer<::socklen_t>(r.entry.addr2);
        const int fd = uninterrupted([&] {
            return ::accept4(r.file, address, size, static_cast<int>(r.entry.accept_flags));
        });
        if (fd == -EAGAIN) {
            // An AF_UNIX listener was shut down: only a blocking accept(2) returns EINVAL.
            learn(*r.on);
            const bool has_ended = r.on->what != state::kind::tcp && is_ready(r.file, POLLRDHUP);
            return has_ended ? -EINVAL : again_in;
        }
        if (fd < 0) {
            return fd;
        }
        fresh(fd);
        learn(*r.on);
        const bool more = r.on->what == state::kind::tcp && is_ready(r.file, POLLIN);
        const std::uint32_t more_flags = more ? cqe_flag::sock_nonempty : 0;
        if (!r.multishot()) {
            r.result_flags |= more_flags;
            return fd;
        }
        if (const int tried = post_part(r, fd, parts, false, more_flags); tried != next_part) {
            return tried;
        }
    }
}

int epoll_backend::errno_of_accept(int fd) noexcept {
    // Fails immediately: the socket does not listen.
    const int accepted = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted >= 0) { // it has just started to listen
        ::close(accepted);
        return ECONNABORTED;
    }
    return errno;
}

/// After epoll has reported an event, the socket's error, if it has one, is the outcome. Otherwise
/// a second connect(2) returns the outcome.
int epoll_backend::try_connect(epoll_request& r) noexcept {
    if (r.phase != 0) {
        ::pollfd p{r.file, POLLOUT, 0};
        if (::poll(&p, 1, 0) == 0) {
            return again_out;
        }
        int outcome = 0;
        ::socklen_t size = sizeof outcome;
        if ((p.revents & POLLERR) != 0 &&
            ::getsockopt(r.file, SOL_SOCKET, SO_ERROR, &outcome, &size) == 0 && outcome != 0) {
            return -outcome;
        }
    }
    const int flags = ::fcntl(r.file, F_GETFL);
    if (flags < 0) {
        return -EBADF;
    }
    const bool blocks = (flags & O_NONBLOCK) == 0;
    if (blocks && ::fcntl(r.file, F_SETFL, flags | O_NONBLOCK) != 0) {
        return -errno;
    }
    const auto connects = [&r] {
        const int result = ::connect(r.file, pointer<const ::sockaddr>(r.entry.addr),
                                     static_cast<::socklen_t>(r.entry.off));
        return result < 0 ? errno : 0;
    };
    int error = connects();
    if (error == ECONNABORTED) { // the first call after a refusal; as on Linux, it is repeated once
        error = connects();
    }
    if (blocks) {
        ::fcntl(r.file, F_SETFL, flags);
    }
    if (error == EINPROGRESS || error == EINTR || (error == EALREADY && r.phase != 0)) {
        r.phase = 1;
        return again_out;
    }
    if (error == EAGAIN) {
        return by_unbounded_worker; // a Unix socket's peer has a full backlog, and epoll does not
                                    // report when that changes
    }
    return error == EISCONN && r.phase != 0 ? 0 : -error;
}

} // namespace coil::uring::detail
