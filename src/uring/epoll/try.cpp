#include "../system_calls.hpp"
#include "epoll_kernel_impl.hpp"

#include <coil/uring/prep_core.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// One try of an operation, which never blocks.

namespace coil::uring::detail {
namespace {

#ifndef RWF_NOWAIT
constexpr int RWF_NOWAIT = 8;
#endif
#ifndef RWF_APPEND
constexpr int RWF_APPEND = 16;
#endif

/// Results of one stream in a row before others get their turn.
constexpr int most_parts = 32;

std::size_t size_of_parts(std::span<const ::iovec> parts) noexcept {
    std::size_t n = 0;
    for (const ::iovec& part : parts)
        n += part.iov_len;
    return n;
}

/// The parts without their first bytes.
class rest_of {
public:
    rest_of(std::span<const ::iovec> parts, std::size_t done) noexcept : parts_(parts) {
        if (done == 0)
            return;
        std::size_t n = 0;
        for (const ::iovec& part : parts) {
            if (done >= part.iov_len) {
                done -= part.iov_len;
                continue;
            }
            copy_[n++] = {static_cast<std::byte*>(part.iov_base) + done, part.iov_len - done};
            done = 0;
        }
        parts_ = {copy_.data(), n};
    }
    ::iovec* data() const noexcept { return const_cast<::iovec*>(parts_.data()); }
    int size() const noexcept { return static_cast<int>(parts_.size()); }
    std::size_t bytes() const noexcept { return size_of_parts(parts_); }

private:
    std::span<const ::iovec> parts_;
    std::array<::iovec, IOV_MAX> copy_; // NOLINT(cppcoreguidelines-pro-type-member-init): by need
};

/// How preadv2(2) and io_uring say "where the file is": as -1.
::off_t offset_of(const epoll_request& r) noexcept {
    if (r.entry.off == ~std::uint64_t{0})
        return -1;
    return static_cast<::off_t>(r.entry.off + r.done);
}

bool is_ready(int fd, short events) noexcept {
    ::pollfd p{fd, events, 0};
    return ::poll(&p, 1, 0) != 0;
}

/// Which sockets io_uring takes for it; here the data is copied.
bool can_zero_copy(int fd) noexcept {
    int domain = 0;
    ::socklen_t size = sizeof domain;
    return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain == AF_INET ||
           domain == AF_INET6;
}

} // namespace

int epoll_kernel::attempt(epoll_request& r) noexcept {
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

// ---- what a descriptor is

void epoll_kernel::learn(state& s) noexcept {
    if (s.what != state::kind::unknown)
        return;
    struct ::stat status{};
    if (::fstat(s.fd, &status) != 0)
        return;
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) {
        const int flags = ::fcntl(s.fd, F_GETFL);
        s.what =
            flags >= 0 && (flags & O_DIRECT) != 0 ? state::kind::direct_file : state::kind::file;
    } else if (S_ISSOCK(status.st_mode)) {
        learn_socket(s);
    } else {
        s.what = state::kind::other;
    }
}

void epoll_kernel::learn_socket(state& s) noexcept {
    int type = 0;
    ::socklen_t size = sizeof type;
    if (::getsockopt(s.fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0)
        s.what = type == SOCK_STREAM ? state::kind::stream : state::kind::socket;
}

// ---- receiving

/// A stream's short read says that there is no more: epoll reports what comes afterwards, if it
/// watches already.
#define COIL_DRAINED(s, n, asked)                                                                  \
    ((n) > 0 && static_cast<std::size_t>(n) < (asked) && (s).what == state::kind::stream &&        \
     ((s).interest & EPOLLIN) != 0 && !(s).hung_up)

int epoll_kernel::try_receive(epoll_request& r) noexcept {
    state& s = *r.on;
    const int flags = static_cast<int>(r.entry.msg_flags) | MSG_DONTWAIT;
    const bool whole = (r.entry.msg_flags & MSG_WAITALL) != 0;
    for (int parts = 0;; ++parts) {
        if (r.selects())
            if (const int error = select(r); error != 0)
                return error;
        const std::span<const ::iovec> data = r.data();
        ssize_t n = 0;
        std::size_t asked = 0;
        if (data.size() == 1 && r.done == 0) [[likely]] {
            asked = data[0].iov_len;
            n = ::recv(r.file, data[0].iov_base, asked, flags);
        } else {
            const rest_of rest(data, r.done);
            ::msghdr message{};
            message.msg_iov = rest.data();
            message.msg_iovlen = static_cast<std::size_t>(rest.size());
            asked = rest.bytes();
            n = ::recvmsg(r.file, &message, flags);
        }
        if (n < 0) {
            const int error = errno;
            if (error == EINTR) {
                --parts;
                continue;
            }
            if (error == EAGAIN) {
                unselect(r);
                return again_in;
            }
            return r.done != 0 ? static_cast<int>(r.done) : -error;
        }
        if (COIL_DRAINED(s, n, asked))
            s.read_blocked = true;
        if (whole && n > 0 && static_cast<std::size_t>(n) < asked) {
            learn(s);
            if (s.what == state::kind::stream) {
                r.done += static_cast<std::uint32_t>(n);
                if (s.read_blocked)
                    return again_in;
                continue;
            }
        }
        const int result = static_cast<int>(n) + static_cast<int>(r.done);
        if (!r.multishot() || n == 0)
            return result;
        if (!part(r, result))
            return result;
        if (s.read_blocked)
            return again_in;
        if (parts == most_parts) {
            again_soon(s);
            return again_in;
        }
    }
}

int epoll_kernel::try_receive_message(epoll_request& r) noexcept {
    state& s = *r.on;
    const int flags = static_cast<int>(r.entry.msg_flags) | MSG_DONTWAIT;
    const bool whole = (r.entry.msg_flags & MSG_WAITALL) != 0;
    for (int parts = 0;; ++parts) {
        ::msghdr message = r.header;
        ::iovec payload{};
        std::size_t front = 0;
        if (r.selects()) {
            if (const int error = select(r); error != 0)
                return error;
            payload = r.data()[0];
        }
        const rest_of rest(r.data(), r.done);
        if (r.multishot()) {
            // In the buffer: the lengths, the name, the control data, what was sent.
            front = sizeof(recvmsg_out) + message.msg_namelen + message.msg_controllen;
            if (payload.iov_base == nullptr || payload.iov_len < front) {
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
        const ssize_t n = ::recvmsg(r.file, &message, flags);
        if (n < 0) {
            const int error = errno;
            if (error == EINTR) {
                --parts;
                continue;
            }
            if (error == EAGAIN) {
                unselect(r);
                return again_in;
            }
            return r.done != 0 ? static_cast<int>(r.done) : -error;
        }
        if (!r.multishot()) {
            const std::size_t asked = rest.bytes();
            if (whole && n > 0 && static_cast<std::size_t>(n) < asked) {
                learn(s);
                if (s.what == state::kind::stream) {
                    r.done += static_cast<std::uint32_t>(n);
                    continue;
                }
            }
            const ::msghdr asked_for = r.header;
            r.header = message;
            finish_message(r, static_cast<int>(n));
            r.header.msg_iov = asked_for.msg_iov;
            return static_cast<int>(n) + static_cast<int>(r.done);
        }
        const ::msghdr asked_for = r.header;
        r.header.msg_namelen = message.msg_namelen;
        r.header.msg_controllen = message.msg_controllen;
        r.header.msg_flags = message.msg_flags;
        finish_message(r, static_cast<int>(n));
        r.header = asked_for;
        const int result = static_cast<int>(front) + static_cast<int>(n);
        learn(s);
        if (n == 0 && s.what == state::kind::stream)
            return result;
        if (!part(r, result))
            return result;
        if (parts == most_parts) {
            again_soon(s);
            return again_in;
        }
    }
}

// ---- sending

int epoll_kernel::try_send(epoll_request& r) noexcept {
    state& s = *r.on;
    const sqe& e = r.entry;
    const int flags = static_cast<int>(e.msg_flags) | MSG_DONTWAIT | MSG_NOSIGNAL;
    const bool whole = (e.msg_flags & MSG_WAITALL) != 0;
    const bool is_message = r.op() == opcode::sendmsg || r.op() == opcode::sendmsg_zc;
    if ((r.op() == opcode::send_zc || r.op() == opcode::sendmsg_zc) && !can_zero_copy(r.file))
        return -EOPNOTSUPP;
    if (r.selects())
        if (const int error = select(r); error != 0)
            return error;
    for (;;) {
        const std::span<const ::iovec> data = r.data();
        ssize_t n = 0;
        std::size_t asked = 0;
        if (!is_message && data.size() == 1 && r.done == 0) [[likely]] {
            asked = data[0].iov_len;
            n = e.addr_len == 0 ? ::send(r.file, data[0].iov_base, asked, flags)
                                : ::sendto(r.file, data[0].iov_base, asked, flags,
                                           pointer<const ::sockaddr>(e.addr2), e.addr_len);
        } else {
            const rest_of rest(data, r.done);
            ::msghdr message{};
            if (is_message) {
                message = r.header;
                if (r.done != 0)
                    message.msg_controllen = 0; // it went with the first part
            } else if (e.addr_len != 0) {
                message.msg_name = pointer<void>(e.addr2);
                message.msg_namelen = e.addr_len;
            }
            message.msg_iov = rest.data();
            message.msg_iovlen = static_cast<std::size_t>(rest.size());
            asked = rest.bytes();
            n = ::sendmsg(r.file, &message, flags);
        }
        if (n < 0) {
            const int error = errno;
            if (error == EINTR)
                continue;
            if (error == EAGAIN) {
                // A datagram's way may be full although the socket has room: nobody tells when it
                // is not any more.
                learn(s);
                if (s.what == state::kind::socket && is_ready(r.file, POLLOUT)) {
                    unselect(r);
                    return by_endless_worker;
                }
                unselect(r);
                return again_out;
            }
            return r.done != 0 ? static_cast<int>(r.done) : -error;
        }
        if (whole && n > 0 && static_cast<std::size_t>(n) < asked) {
            learn(s);
            if (s.what == state::kind::stream) {
                r.done += static_cast<std::uint32_t>(n);
                continue;
            }
        }
        return static_cast<int>(n) + static_cast<int>(r.done);
    }
}

// ---- reading and writing

/// The descriptor cannot be told not to wait.
int epoll_kernel::after_refusal(epoll_request& r, bool in) noexcept {
    state& s = *r.on;
    learn(s);
    if (s.what == state::kind::file || s.what == state::kind::direct_file)
        return by_worker;
    if (!is_ready(r.file, in ? POLLIN : POLLOUT))
        return in ? again_in : again_out;
    return by_endless_worker; // somebody else may be quicker
}

int epoll_kernel::try_read(epoll_request& r) noexcept {
    state& s = *r.on;
    const int flags = static_cast<int>(r.entry.rw_flags);
    if (s.what == state::kind::unknown && r.entry.off != ~std::uint64_t{0})
        learn(s);
    if (s.what == state::kind::direct_file) {
        s.what = state::kind::unknown; // ask again: by a number only
        learn(s);
        if (s.what == state::kind::direct_file)
            return by_worker; // it would wait for the device here
    }
    if (r.multishot()) {
        learn(s);
        if (s.what == state::kind::file || s.what == state::kind::direct_file)
            return -EBADFD;
    }
    for (int parts = 0;; ++parts) {
        if (r.selects())
            if (const int error = select(r); error != 0)
                return error;
        const rest_of rest(r.data(), r.done);
        const ::off_t offset = offset_of(r);
        ssize_t n = ::preadv2(r.file, rest.data(), rest.size(), offset, flags | RWF_NOWAIT);
        if (n < 0 && errno == ESPIPE && offset != -1)
            n = ::preadv2(r.file, rest.data(), rest.size(), -1, flags | RWF_NOWAIT);
        if (n < 0) {
            const int error = errno;
            if (error == EINTR) {
                --parts;
                continue;
            }
            if (error == EOPNOTSUPP && (flags & RWF_NOWAIT) == 0) {
                const int open_flags = ::fcntl(r.file, F_GETFL);
                if (open_flags >= 0 && (open_flags & O_NONBLOCK) != 0) {
                    n = ::readv(r.file, rest.data(), rest.size());
                    if (n < 0 && errno == EAGAIN) {
                        unselect(r);
                        return again_in;
                    }
                    if (n < 0)
                        return -errno;
                } else {
                    unselect(r);
                    return after_refusal(r, true);
                }
            } else if (error == EAGAIN) {
                unselect(r);
                if ((flags & RWF_NOWAIT) != 0)
                    return -EAGAIN;
                learn(s);
                return s.what == state::kind::file ? by_worker : again_in;
            } else {
                return r.done != 0 ? static_cast<int>(r.done) : -error;
            }
        }
        const std::size_t asked = rest.bytes();
        if (static_cast<std::size_t>(n) < asked && n > 0 && !r.selects() && offset != -1) {
            learn(s);
            if (s.what == state::kind::file && (flags & RWF_NOWAIT) == 0) {
                r.done += static_cast<std::uint32_t>(n); // the rest is not in memory, or not there
                return by_worker;
            }
        }
        if (COIL_DRAINED(s, n, asked))
            s.read_blocked = true;
        const int result = static_cast<int>(n) + static_cast<int>(r.done);
        if (!r.multishot() || n == 0)
            return result;
        if (!part(r, result))
            return result;
        if (parts == most_parts) {
            again_soon(s);
            return again_in;
        }
    }
}

int epoll_kernel::try_write(epoll_request& r) noexcept {
    state& s = *r.on;
    const int flags = static_cast<int>(r.entry.rw_flags);
    if (s.what == state::kind::unknown && r.entry.off != ~std::uint64_t{0})
        learn(s);
    if (s.what == state::kind::direct_file) {
        s.what = state::kind::unknown;
        learn(s);
        if (s.what == state::kind::direct_file)
            return by_worker;
    }
    const rest_of rest(r.data(), r.done);
    for (;;) {
        const ::off_t offset = offset_of(r);
        ssize_t n = ::pwritev2(r.file, rest.data(), rest.size(), offset, flags | RWF_NOWAIT);
        if (n < 0 && errno == ESPIPE && offset != -1)
            n = ::pwritev2(r.file, rest.data(), rest.size(), -1, flags | RWF_NOWAIT);
        if (n >= 0) {
            const bool is_short = static_cast<std::size_t>(n) < rest.bytes();
            if (is_short && n > 0 && offset != -1) {
                learn(s);
                if (s.what == state::kind::file && (flags & RWF_NOWAIT) == 0) {
                    r.done += static_cast<std::uint32_t>(n);
                    return by_worker;
                }
            }
            return static_cast<int>(n) + static_cast<int>(r.done);
        }
        const int error = errno;
        if (error == EINTR)
            continue;
        if (error == EOPNOTSUPP && (flags & RWF_NOWAIT) == 0) {
            const int open_flags = ::fcntl(r.file, F_GETFL);
            learn(s);
            if (s.what == state::kind::other && open_flags >= 0 && (open_flags & O_NONBLOCK) != 0) {
                n = ::writev(r.file, rest.data(), rest.size());
                if (n >= 0)
                    return static_cast<int>(n);
                return errno == EAGAIN ? again_out : -errno;
            }
            return after_refusal(r, false);
        }
        if (error == EAGAIN) {
            if ((flags & RWF_NOWAIT) != 0)
                return -EAGAIN;
            learn(s);
            return s.what == state::kind::file ? by_worker : again_out;
        }
        return r.done != 0 ? static_cast<int>(r.done) : -error;
    }
}

// ---- connections

/// accept4(2) has no flag of its own that says not to wait.
int epoll_kernel::try_accept(epoll_request& r) noexcept {
    state& s = *r.on;
    const int flags = ::fcntl(r.file, F_GETFL);
    if (flags < 0)
        return -EBADF;
    if ((flags & O_NONBLOCK) == 0) {
        // Only of what can be accepted on: other descriptors are left alone.
        int listens = 0;
        ::socklen_t size = sizeof listens;
        if (::getsockopt(r.file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0)
            return -errno;
        if (listens == 0)
            return -errno_of_accept(r.file);
        if (::fcntl(r.file, F_SETFL, flags | O_NONBLOCK) != 0)
            return -errno;
    }
    for (int parts = 0;; ++parts) {
        auto* const address = pointer<::sockaddr>(r.entry.addr);
        auto* const size = pointer<::socklen_t>(r.entry.addr2);
        const int fd = ::accept4(r.file, address, size, static_cast<int>(r.entry.accept_flags));
        if (fd < 0) {
            const int error = errno;
            if (error == EINTR) {
                --parts;
                continue;
            }
            return error == EAGAIN ? again_in : -error;
        }
        fresh(fd);
        if (!r.multishot())
            return fd;
        if (!part(r, fd))
            return fd;
        if (parts == most_parts) {
            again_soon(s);
            return again_in;
        }
    }
}

int epoll_kernel::errno_of_accept(int fd) noexcept {
    // It fails at once: the socket does not listen.
    const int accepted = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted >= 0) { // it does, since a moment ago
        ::close(accepted);
        return ECONNABORTED;
    }
    return errno;
}

/// Asked again when epoll says that something has come of it, connect(2) tells what, and makes the
/// socket fit for another attempt when it failed.
int epoll_kernel::try_connect(epoll_request& r) noexcept {
    if (r.phase != 0 && !is_ready(r.file, POLLOUT))
        return again_out;
    const int flags = ::fcntl(r.file, F_GETFL);
    if (flags < 0)
        return -EBADF;
    const bool blocks = (flags & O_NONBLOCK) == 0;
    if (blocks && ::fcntl(r.file, F_SETFL, flags | O_NONBLOCK) != 0)
        return -errno;
    const int result = ::connect(r.file, pointer<const ::sockaddr>(r.entry.addr),
                                 static_cast<::socklen_t>(r.entry.off));
    const int error = result < 0 ? errno : 0;
    if (blocks)
        ::fcntl(r.file, F_SETFL, flags);
    if (error == EINPROGRESS || error == EINTR || (error == EALREADY && r.phase != 0)) {
        r.phase = 1;
        return again_out;
    }
    if (error == EAGAIN)
        return by_endless_worker; // a Unix socket's peer has no room: nobody tells when it has
    return error == EISCONN && r.phase != 0 ? 0 : -error;
}

// ---- readiness itself

int epoll_kernel::try_poll(epoll_request& r) noexcept {
    const auto wanted = static_cast<short>(prep::detail::poll_mask(r.entry.poll32_events) & 0xffff);
    ::pollfd p{r.file, wanted, 0};
    const int n = ::poll(&p, 1, 0);
    if (n < 0)
        return errno == EINTR ? again_event : -errno;
    if ((p.revents & POLLNVAL) != 0)
        return -EBADF;
    if (n == 0)
        return again_event;
    const int events = static_cast<unsigned short>(p.revents);
    if (!r.multishot() || !part(r, events))
        return events;
    return again_event;
}

int epoll_kernel::try_epoll_wait(epoll_request& r) noexcept {
    if (r.entry.off != 0 || r.entry.rw_flags != 0 || r.entry.buf_index != 0 ||
        r.entry.splice_fd_in != 0)
        return -EINVAL;
    const int n = ::epoll_wait(r.file, pointer<::epoll_event>(r.entry.addr),
                               static_cast<int>(r.entry.len), 0);
    if (n < 0)
        return errno == EINTR ? again_in : -errno;
    return n == 0 ? again_in : n;
}

int epoll_kernel::try_waitid(epoll_request& r) noexcept {
    const sqe& e = r.entry;
    ::siginfo_t info{};
    const int options = static_cast<int>(e.file_index);
    const int result = ::waitid(static_cast<::idtype_t>(e.len), static_cast<::id_t>(e.fd), &info,
                                options | WNOHANG);
    if (result != 0)
        return -errno;
    if (info.si_pid == 0 && (options & WNOHANG) == 0)
        return again_in;
    if (auto* const to = pointer<::siginfo_t>(e.addr2); to != nullptr) {
        to->si_signo = info.si_signo;
        to->si_errno = 0;
        to->si_code = info.si_code;
        to->si_pid = info.si_pid;
        to->si_uid = info.si_uid;
        to->si_status = info.si_status;
    }
    return 0;
}

} // namespace coil::uring::detail
