#include "../opcode_kinds.hpp"
#include "../readable.hpp"
#include "../system_calls.hpp"
#include "epoll_backend_impl.hpp"

#include <coil/uring/perform.hpp>
#include <coil/uring/syscall.hpp>

#include <cerrno>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Calls that are made immediately, on the ring's thread.

namespace coil::uring::detail {

int epoll_backend::perform(const sqe& request) noexcept {
    // On another thread this is a plain system call: only the ring's thread may touch the cached
    // state, which is revalidated at the number's next use.
    const bool here = owner_ != 0 && owner_ == thread_number;
    const auto op = static_cast<opcode>(request.opcode);
    if (here && op == opcode::close && request.file_index == 0) {
        return request.fd == epoll_ || request.fd == wake_fd_ ? -EBADF
                                                              : close_descriptor(request.fd);
    }
    const int result = backend::perform(request);
    if (!here || result < 0) {
        return result;
    }
    if (op == opcode::socket || op == opcode::openat || op == opcode::openat2 ||
        op == opcode::accept) {
        fresh(result);
    }
    if (op == opcode::pipe) {
        fresh(pointer<int>(request.addr)[0]);
        fresh(pointer<int>(request.addr)[1]);
    }
    return result;
}

/// A file for the table is a process descriptor in this backend: set close-on-exec, as child
/// processes do not inherit direct descriptors.
void epoll_backend::keep_from_children(epoll_request& r) noexcept {
    switch (r.op()) {
    case opcode::accept:
    case opcode::openat:
    case opcode::pipe:
        r.entry.open_flags |= O_CLOEXEC; // the flags of accept and pipe share this union member
        break;
    case opcode::openat2:
        copy_args(r);
        if (r.entry.addr2 != 0 && r.kept() && r.entry.len >= sizeof(std::uint64_t)) {
            *pointer<std::uint64_t>(r.entry.addr2) |= O_CLOEXEC;
        }
        break;
    case opcode::socket:
        r.entry.off |= SOCK_CLOEXEC;
        break;
    default:
        break;
    }
}

bool epoll_backend::has_opcode(opcode op) const noexcept { return op != opcode::recv_zc; }

int epoll_backend::begin(request& one) noexcept {
    auto& r = static_cast<epoll_request&>(one);
    if (r.entry.file_index != 0) {
        keep_from_children(r);
        if (r.early_result() != 0) {
            return r.early_result(); // the flag is in the arguments, which could not be copied
        }
    }
    r.at = place::nowhere;
    r.interrupting = r.sure = r.waited = false;
    r.phase = 0;
    r.helper = -1;
    r.on = r.held = r.held_in = nullptr;
    switch (r.op()) {
    case opcode::read:
    case opcode::write:
    case opcode::readv:
    case opcode::writev:
    case opcode::read_fixed:
    case opcode::write_fixed:
    case opcode::readv_fixed:
    case opcode::writev_fixed:
    case opcode::read_multishot:
    case opcode::send:
    case opcode::recv:
    case opcode::sendmsg:
    case opcode::recvmsg:
    case opcode::send_zc:
    case opcode::sendmsg_zc:
    case opcode::accept:
    case opcode::connect:
    case opcode::poll_add:
    case opcode::epoll_wait:
        return begin_io(r);
    default:
        return begin_call(r);
    }
}

int epoll_backend::begin_call(epoll_request& r) noexcept {
    const sqe& s = r.entry;
    if (has_file(r.op()) && (is_closing(r.file) || is_closing(r.file_in))) [[unlikely]] {
        return -EBADF;
    }
    switch (r.op()) {
    case opcode::close:
        return s.fd == epoll_ || s.fd == wake_fd_ ? -EBADF : close_descriptor(s.fd);
    case opcode::socket:
        return begin_socket(s);
    case opcode::pipe:
        return begin_pipe(s);
    case opcode::bind:
    case opcode::listen:
    case opcode::shutdown:
    case opcode::epoll_ctl:
        return plain_call(r);
    case opcode::uring_cmd: {
        // io_uring supports getsockopt for this level only.
        const bool gets = s.cmd_op == socket_command::getsockopt && s.sockopt.level == SOL_SOCKET;
        const bool known = gets || s.cmd_op == socket_command::setsockopt;
        const int result = known ? plain_call(r) : is_open(r.file) ? -EOPNOTSUPP : -EBADF;
        return result == -ENOTSOCK ? -EOPNOTSUPP : result; // a file without commands
    }
    case opcode::futex_wake:
        return perform_on_linux(s);
    case opcode::futex_wait:
        return s.addr3 == 0 ? -EINVAL : wait_on_futex(r);
    case opcode::futex_waitv:
        return wait_on_futex(r);
    case opcode::waitid:
        return begin_waitid(r);
    case opcode::msg_ring:
        return send_message(r);
    case opcode::tee:
        return begin_tee(r);
    case opcode::splice:
        return hand_over(r, true);
    case opcode::openat:
    case opcode::openat2:
        return begin_open(r);
    case opcode::fsync:
        // io_uring checks the offset of the range. Here the whole file is synchronised.
        return static_cast<std::int64_t>(s.off) < 0 ? -EINVAL : hand_over(r, false);
    case opcode::sync_file_range:
    case opcode::fallocate:
    case opcode::ftruncate:
    case opcode::fadvise:
    case opcode::madvise:
    case opcode::statx:
    case opcode::getxattr:
    case opcode::setxattr:
    case opcode::fgetxattr:
    case opcode::fsetxattr:
    case opcode::unlinkat:
    case opcode::renameat:
    case opcode::mkdirat:
    case opcode::symlinkat:
    case opcode::linkat:
        return hand_over(r, false);
    default:
        return -EOPNOTSUPP;
    }
}

int epoll_backend::begin_socket(const sqe& s) noexcept {
    const int fd = checked(::socket(s.fd, static_cast<int>(s.off), static_cast<int>(s.len)));
    if (fd >= 0) {
        fresh(fd);
    }
    return fd;
}

int epoll_backend::begin_pipe(const sqe& s) noexcept {
    auto* const ends = pointer<int>(s.addr);
    const int error = checked(::pipe2(ends, static_cast<int>(s.pipe_flags)));
    if (error < 0) {
        return error;
    }
    fresh(ends[0]);
    fresh(ends[1]);
    return 0;
}

int epoll_backend::begin_waitid(epoll_request& r) noexcept {
    const sqe& s = r.entry;
    const int tried = try_waitid(r);
    if (tried != again_in) {
        return tried;
    }
    const auto options = static_cast<int>(s.file_index);
    if (static_cast<::idtype_t>(s.len) == P_PID && (options & (WSTOPPED | WCONTINUED)) == 0) {
        r.helper = static_cast<int>(::syscall(SYS_pidfd_open, s.fd, 0));
        if (r.helper >= 0) {
            fresh(r.helper);
            const int result = begin_io(r);
            if (result != pending) {
                clean_up(r);
            }
            return result;
        }
    }
    return hand_over(r, true);
}

int epoll_backend::begin_tee(epoll_request& r) noexcept {
    const sqe& s = r.entry;
    const auto flags = static_cast<unsigned>(s.splice_flags) & ~splice_flag::fd_in_fixed;
    const int n =
        checked(::tee(r.file_in, r.file, s.len, flags | static_cast<unsigned>(SPLICE_F_NONBLOCK)));
    return n == -EAGAIN && (flags & SPLICE_F_NONBLOCK) == 0 ? hand_over(r, true) : n;
}

/// Makes the system call on the file that the request has resolved (`r.file`).
int epoll_backend::plain_call(const epoll_request& r) noexcept {
    sqe plain = r.entry;
    plain.fd = r.file;
    plain.flags = 0;
    return perform_on_linux(plain);
}

/// Opens a path immediately if looking it up needs no device. The file is opened with O_NONBLOCK,
/// as io_uring does in its first attempt; opening a FIFO for reading therefore does not wait for a
/// writer.
int epoll_backend::begin_open(epoll_request& r) noexcept {
    const sqe& s = r.entry;
    struct {
        std::uint64_t flags;
        std::uint64_t mode;
        std::uint64_t resolve;
    } how{s.open_flags, 0, 0};
    constexpr std::uint64_t resolve_cached = 0x20;
    constexpr std::uint64_t makes = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    if (r.op() == opcode::openat2) {
        if (s.len != sizeof how || !is_readable(pointer<const void>(s.addr2), sizeof how)) {
            return hand_over(r, false);
        }
        how = *pointer<const decltype(how)>(s.addr2);
    }
    if (r.has(sqe_flag::async) || (how.flags & makes) != 0) {
        return hand_over(r, false);
    }
    const bool waits = (how.flags & O_NONBLOCK) == 0;
    how.flags |= O_NONBLOCK | O_LARGEFILE;
    how.resolve |= resolve_cached;
    const auto fd = static_cast<int>(
        ::syscall(SYS_openat2, s.fd, pointer<const char>(s.addr), &how, sizeof how));
    if (fd < 0) {
        return errno == EAGAIN || errno == EINVAL || errno == ENOSYS || errno == EPERM
                   ? hand_over(r, false)
                   : -errno;
    }
    fresh(fd);
    if (waits && (how.flags & O_PATH) == 0) {
        if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0) {
            ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        }
    }
    return fd;
}

int epoll_backend::close_descriptor(int fd) noexcept {
    state* const s = descriptors_.find(fd);
    if (s == nullptr) {
        return checked(::close(fd));
    }
    if (s->closing) {
        return -EBADF;
    }
    if (s->interest != 0) {
        // Another descriptor may keep the file open, and with it the registration.
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    }
    fresh(fd);
    if (s->working == 0) {
        return checked(::close(fd));
    }
    // With io_uring, requests keep the file open; here they keep the number from being reused.
    if (::fcntl(fd, F_GETFD) < 0) {
        return -EBADF;
    }
    s->closing = true;
    return 0;
}

bool epoll_backend::is_closing(int fd) const noexcept {
    const state* const s = fd >= 0 ? descriptors_.find(fd) : nullptr;
    return s != nullptr && s->closing;
}

} // namespace coil::uring::detail
