#include "../opcode_kinds.hpp"
#include "../system_calls.hpp"
#include "epoll_kernel_impl.hpp"

#include <coil/uring/perform.hpp>
#include <coil/uring/syscall.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

// The calls that are made at once on the ring's thread, and those that a thread of the pool makes.

namespace coil::uring::detail {
namespace {

int command_to_socket(int fd, const sqe& s) noexcept {
    // io_uring has this level alone.
    const bool gets = s.cmd_op == socket_command::getsockopt && s.sockopt.level == SOL_SOCKET;
    if (!gets && s.cmd_op != socket_command::setsockopt)
        return -EOPNOTSUPP;
    sqe plain = s;
    plain.fd = fd;
    plain.flags = 0;
    return perform_on_linux(plain);
}

constexpr std::uint32_t futex_flags = futex_flag::size_u32 | futex_flag::private_;

bool are_futex_flags(std::uint32_t flags) noexcept {
    return (flags & ~futex_flags) == 0 && (flags & futex_flag::size_u32) != 0;
}

int wake_futex(const sqe& s) noexcept {
    return s.len != 0 || s.futex_flags != 0 || s.buf_index != 0 || s.file_index != 0
               ? -EINVAL
               : perform_on_linux(s);
}

int futex_wait(const sqe& s) noexcept {
    const auto flags = static_cast<std::uint32_t>(s.fd);
    const int op = FUTEX_WAIT_BITSET | static_cast<int>(flags & futex_flag::private_);
    return checked(::syscall(SYS_futex, pointer<void>(s.addr), op,
                             static_cast<std::uint32_t>(s.off), nullptr, nullptr,
                             static_cast<std::uint32_t>(s.addr3)));
}

#ifndef SYS_futex_waitv
constexpr long SYS_futex_waitv = 449;
#endif
#ifndef SYS_openat2
constexpr long SYS_openat2 = 437;
#endif

/// epoll_request::phase of a read or write that a thread executes on a file.
constexpr std::uint8_t on_file = 2;

/// What is left of it after `done` bytes, as read(2) and io_uring do on a file: until all is there
/// or there is no more.
int transfer(const epoll_request& r, bool in) noexcept {
    std::uint32_t done = r.done;
    const int flags = static_cast<int>(r.entry.rw_flags);
    const std::span<const ::iovec> parts = r.data();
    std::size_t skip = done;
    for (std::size_t i = 0; i < parts.size();) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            ++i;
            continue;
        }
        // Whole vectors where nothing is skipped: one call for all in the usual case.
        ::iovec head{static_cast<std::byte*>(parts[i].iov_base) + skip, parts[i].iov_len - skip};
        const ::iovec* from = skip == 0 ? &parts[i] : &head;
        const int count = skip == 0 ? static_cast<int>(parts.size() - i) : 1;
        std::size_t asked = 0;
        for (int k = 0; k < count; ++k)
            asked += from[k].iov_len;
        const ::off_t offset =
            r.entry.off == ~std::uint64_t{0} ? -1 : static_cast<::off_t>(r.entry.off + done);
        ssize_t n = in ? ::preadv2(r.file, from, count, offset, flags)
                       : ::pwritev2(r.file, from, count, offset, flags);
        if (n < 0 && errno == ESPIPE && offset != -1)
            n = in ? ::readv(r.file, from, count) : ::writev(r.file, from, count);
        if (n < 0 && errno == EINTR && !r.job.cancelled.load())
            continue;
        if (n < 0)
            return done != 0 ? static_cast<int>(done) : -errno;
        done += static_cast<std::uint32_t>(n);
        if (n == 0 || static_cast<std::size_t>(n) < asked) {
            if (n == 0 || r.phase != on_file)
                return static_cast<int>(done);
        }
        skip += static_cast<std::size_t>(n);
    }
    return static_cast<int>(done);
}

/// Opening a FIFO does; it must not keep a thread from those who end by themselves.
bool waits_for_other_side(const epoll_request& r) noexcept {
    struct ::stat status{};
    const sqe& s = r.entry;
    return ::fstatat(s.fd, pointer<const char>(s.addr), &status, 0) == 0 &&
           S_ISFIFO(status.st_mode);
}

} // namespace

int epoll_kernel::perform(const sqe& request) noexcept {
    // Elsewhere it is a plain call. What its number means is found out when it is used next.
    const bool here = owner_ != 0 && owner_ == thread_number;
    const auto op = static_cast<opcode>(request.opcode);
    if (here && op == opcode::close && request.file_index == 0)
        return request.fd == epoll_ || request.fd == wake_fd_ ? -EBADF
                                                              : close_descriptor(request.fd);
    const int result = kernel::perform(request);
    if (!here || result < 0)
        return result;
    if (op == opcode::socket || op == opcode::openat || op == opcode::openat2 ||
        op == opcode::accept)
        fresh(result);
    if (op == opcode::pipe) {
        fresh(pointer<int>(request.addr)[0]);
        fresh(pointer<int>(request.addr)[1]);
    }
    return result;
}

/// What is to be in the table is a descriptor all the same: a child of the process has none.
void epoll_kernel::keep_from_children(epoll_request& r) noexcept {
    switch (r.op()) {
    case opcode::accept:
    case opcode::openat:
    case opcode::pipe:
        r.entry.open_flags |= O_CLOEXEC; // which is what the others call it, too
        break;
    case opcode::openat2:
        keep(r);
        if (r.entry.addr2 != 0 && r.entry.len >= sizeof(std::uint64_t))
            *pointer<std::uint64_t>(r.entry.addr2) |= O_CLOEXEC;
        break;
    case opcode::socket:
        r.entry.off |= SOCK_CLOEXEC;
        break;
    default:
        break;
    }
}

bool epoll_kernel::has_opcode(opcode op) const noexcept { return op != opcode::recv_zc; }

int epoll_kernel::begin(request& one) noexcept {
    auto& r = static_cast<epoll_request&>(one);
    if (r.entry.file_index != 0)
        keep_from_children(r);
    r.at = place::nowhere;
    r.interrupting = r.sure = false;
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

int epoll_kernel::begin_call(epoll_request& r) noexcept {
    const sqe& s = r.entry;
    if (has_file(r.op()) && (is_closing(r.file) || is_closing(r.file_in))) [[unlikely]]
        return -EBADF;
    switch (r.op()) {
    case opcode::close:
        return s.fd == epoll_ || s.fd == wake_fd_ ? -EBADF : close_descriptor(s.fd);
    case opcode::socket: {
        const int fd = checked(::socket(s.fd, static_cast<int>(s.off), static_cast<int>(s.len)));
        if (fd >= 0)
            fresh(fd);
        return fd;
    }
    case opcode::pipe: {
        int ends[2];
        const int error = checked(::pipe2(ends, static_cast<int>(s.pipe_flags)));
        if (error < 0)
            return error;
        for (int i = 0; i < 2; ++i) {
            fresh(ends[i]);
            pointer<int>(s.addr)[i] = ends[i];
        }
        return 0;
    }
    case opcode::bind:
        return checked(
            ::bind(r.file, pointer<const ::sockaddr>(s.addr), static_cast<::socklen_t>(s.addr2)));
    case opcode::listen:
        return checked(::listen(r.file, static_cast<int>(s.len)));
    case opcode::shutdown:
        return checked(::shutdown(r.file, static_cast<int>(s.len)));
    case opcode::uring_cmd:
        return command_to_socket(r.file, s);
    case opcode::epoll_ctl:
        return checked(::epoll_ctl(s.fd, static_cast<int>(s.len), static_cast<int>(s.off),
                                   pointer<::epoll_event>(s.addr)));
    case opcode::futex_wake:
        return wake_futex(s);
    case opcode::futex_wait: {
        if (!are_futex_flags(static_cast<std::uint32_t>(s.fd)) || s.len != 0 ||
            s.futex_flags != 0 || s.buf_index != 0 || s.file_index != 0 || s.addr3 == 0 ||
            s.addr3 > futex_match_any || s.off > UINT32_MAX)
            return -EINVAL;
        return wait_on_futex(r);
    }
    case opcode::futex_waitv:
        if (s.fd != 0 || s.off != 0 || s.futex_flags != 0 || s.buf_index != 0 ||
            s.file_index != 0 || s.addr3 != 0 || s.len == 0 || s.len > 128)
            return -EINVAL;
        return wait_on_futex(r);
    case opcode::waitid: {
        if (s.addr != 0 || s.buf_index != 0 || s.addr3 != 0 || s.waitid_flags != 0)
            return -EINVAL;
        const int tried = try_waitid(r);
        if (tried != again_in)
            return tried;
        const auto options = static_cast<int>(s.file_index);
        if (static_cast<::idtype_t>(s.len) == P_PID && (options & (WSTOPPED | WCONTINUED)) == 0) {
            r.helper = static_cast<int>(::syscall(SYS_pidfd_open, s.fd, 0));
            if (r.helper >= 0) {
                fresh(r.helper);
                const int result = begin_io(r);
                if (result != pending)
                    clean_up(r);
                return result;
            }
        }
        return hand_over(r, true);
    }
    case opcode::msg_ring:
        return send_message(s);
    case opcode::tee: {
        const auto flags = static_cast<unsigned>(s.splice_flags) & ~splice_flag::fd_in_fixed;
        const int n = checked(
            ::tee(r.file_in, r.file, s.len, flags | static_cast<unsigned>(SPLICE_F_NONBLOCK)));
        return n == -EAGAIN && (flags & SPLICE_F_NONBLOCK) == 0 ? hand_over(r, true) : n;
    }
    case opcode::splice:
        return hand_over(r, true);
    case opcode::openat:
    case opcode::openat2:
        return begin_open(r);
    case opcode::fsync:
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

/// What needs no device is opened at once, and a FIFO without waiting for the other side: as
/// io_uring does.
int epoll_kernel::begin_open(epoll_request& r) noexcept {
    const sqe& s = r.entry;
    struct {
        std::uint64_t flags;
        std::uint64_t mode;
        std::uint64_t resolve;
    } how{s.open_flags, 0, 0};
    constexpr std::uint64_t resolve_cached = 0x20;
    constexpr std::uint64_t makes = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    if (r.op() == opcode::openat2) {
        if (s.len != sizeof how || s.addr2 == 0)
            return hand_over(r, false);
        how = *pointer<const decltype(how)>(s.addr2);
    }
    if (r.has(sqe_flag::async) || (how.flags & makes) != 0)
        return hand_over(r, false);
    const bool waits = (how.flags & O_NONBLOCK) == 0;
    how.flags |= O_NONBLOCK | O_LARGEFILE;
    how.resolve |= resolve_cached;
    const auto fd = static_cast<int>(
        ::syscall(SYS_openat2, s.fd, pointer<const char>(s.addr), &how, sizeof how));
    if (fd < 0)
        return errno == EAGAIN || errno == EINVAL || errno == ENOSYS || errno == EPERM
                   ? hand_over(r, false)
                   : -errno;
    fresh(fd);
    if (waits && (how.flags & O_PATH) == 0)
        if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0)
            ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

int epoll_kernel::close_descriptor(int fd) noexcept {
    state* const s = descriptors_.find(fd);
    if (s == nullptr)
        return checked(::close(fd));
    if (s->closing)
        return -EBADF;
    if (s->interest != 0)
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); // the file may have another owner
    fresh(fd);
    if (s->working == 0)
        return checked(::close(fd));
    // On io_uring they would keep the file; here they keep its number from others.
    if (::fcntl(fd, F_GETFD) < 0)
        return -EBADF;
    s->closing = true;
    return 0;
}

bool epoll_kernel::is_closing(int fd) const noexcept {
    const state* const s = fd >= 0 ? descriptors_.find(fd) : nullptr;
    return s != nullptr && s->closing;
}

/// A thread gets it, and must find its file whenever it looks.
void epoll_kernel::hold(epoll_request& r) noexcept {
    if (r.held != nullptr || !has_file(r.op()))
        return;
    r.held = descriptors_.get(r.file);
    if (r.held != nullptr)
        ++r.held->working;
    if (r.op() == opcode::splice || r.op() == opcode::tee) {
        r.held_in = descriptors_.get(r.file_in);
        if (r.held_in != nullptr)
            ++r.held_in->working;
    }
}

void epoll_kernel::let_go(epoll_request& r) noexcept {
    for (state** one : {&r.held, &r.held_in}) {
        state* const s = std::exchange(*one, nullptr);
        if (s != nullptr && --s->working == 0 && s->closing) {
            s->closing = false;
            ::close(s->fd);
        }
    }
}

/// On a thread of the pool.
int epoll_kernel::work(worker_job& job) noexcept {
    epoll_request& r = *static_cast<epoll_request::its_job&>(job).owner;
    if (job.cancelled.load())
        return -EINTR;
    const sqe& s = r.entry;
    switch (r.op()) {
    case opcode::read:
    case opcode::readv:
    case opcode::read_fixed:
    case opcode::readv_fixed:
        return transfer(r, true);
    case opcode::write:
    case opcode::writev:
    case opcode::write_fixed:
    case opcode::writev_fixed:
        return transfer(r, false);
    case opcode::send:
    case opcode::sendmsg:
    case opcode::send_zc:
    case opcode::sendmsg_zc: {
        ::msghdr message = message_of(r);
        message.msg_iov = r.data().data();
        message.msg_iovlen = r.data().size();
        return checked(::sendmsg(r.file, &message, static_cast<int>(s.msg_flags) | MSG_NOSIGNAL));
    }
    case opcode::connect:
        return checked(
            ::connect(r.file, pointer<const ::sockaddr>(s.addr), static_cast<::socklen_t>(s.off)));
    case opcode::splice: {
        auto in = static_cast<::loff_t>(s.splice_off_in);
        auto out = static_cast<::loff_t>(s.off);
        return checked(::splice(r.file_in, in == -1 ? nullptr : &in, r.file,
                                out == -1 ? nullptr : &out, s.len,
                                s.splice_flags & ~splice_flag::fd_in_fixed));
    }
    case opcode::tee:
        return checked(::tee(r.file_in, r.file, s.len, s.splice_flags & ~splice_flag::fd_in_fixed));
    case opcode::openat:
        if (!job.endless && waits_for_other_side(r))
            return by_endless_worker;
        return checked(::openat(s.fd, pointer<const char>(s.addr), static_cast<int>(s.open_flags),
                                static_cast<::mode_t>(s.len)));
    case opcode::openat2:
        if (!job.endless && waits_for_other_side(r))
            return by_endless_worker;
        return checked(::syscall(SYS_openat2, s.fd, pointer<const char>(s.addr),
                                 pointer<void>(s.addr2), static_cast<std::size_t>(s.len)));
    case opcode::futex_wait:
        job.sleeper.store(static_cast<int>(::syscall(SYS_gettid)));
        return futex_wait(s);
    case opcode::futex_waitv:
        job.sleeper.store(static_cast<int>(::syscall(SYS_gettid)));
        return checked(::syscall(SYS_futex_waitv, pointer<void>(s.addr), s.len, 0U, nullptr, 0));
    case opcode::waitid: {
        ::siginfo_t info{};
        const int options = static_cast<int>(s.file_index);
        if (::waitid(static_cast<::idtype_t>(s.len), static_cast<::id_t>(s.fd), &info, options) !=
            0)
            return -errno;
        if (auto* const to = pointer<::siginfo_t>(s.addr2); to != nullptr)
            *to = info;
        return 0;
    }
    case opcode::fsync:
        if (s.len != 0)
            return checked(::sync_file_range(r.file, static_cast<::off_t>(s.off), s.len,
                                             SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                                 SYNC_FILE_RANGE_WAIT_AFTER));
        return checked((s.fsync_flags & fsync_flag::datasync) != 0 ? ::fdatasync(r.file)
                                                                   : ::fsync(r.file));
    case opcode::sync_file_range:
        return checked(
            ::sync_file_range(r.file, static_cast<::off_t>(s.off), s.len, s.sync_range_flags));
    case opcode::fallocate:
        return checked(::fallocate(r.file, static_cast<int>(s.len), static_cast<::off_t>(s.off),
                                   static_cast<::off_t>(s.addr)));
    case opcode::ftruncate:
        return checked(::ftruncate(r.file, static_cast<::off_t>(s.off)));
    case opcode::fadvise:
        return -::posix_fadvise(r.file, static_cast<::off_t>(s.off),
                                static_cast<::off_t>(s.addr != 0 ? s.addr : s.len),
                                static_cast<int>(s.fadvise_advice));
    case opcode::madvise:
        return checked(::madvise(pointer<void>(s.addr), s.off != 0 ? s.off : s.len,
                                 static_cast<int>(s.fadvise_advice)));
    case opcode::statx:
        return checked(::syscall(SYS_statx, s.fd, pointer<const char>(s.addr), s.statx_flags, s.len,
                                 pointer<void>(s.addr2)));
    case opcode::getxattr:
        return checked(::getxattr(pointer<const char>(s.addr3), pointer<const char>(s.addr),
                                  pointer<void>(s.addr2), s.len));
    case opcode::setxattr:
        return checked(::setxattr(pointer<const char>(s.addr3), pointer<const char>(s.addr),
                                  pointer<void>(s.addr2), s.len, static_cast<int>(s.xattr_flags)));
    case opcode::fgetxattr:
        return checked(
            ::fgetxattr(r.file, pointer<const char>(s.addr), pointer<void>(s.addr2), s.len));
    case opcode::fsetxattr:
        return checked(::fsetxattr(r.file, pointer<const char>(s.addr), pointer<void>(s.addr2),
                                   s.len, static_cast<int>(s.xattr_flags)));
    case opcode::unlinkat:
        return checked(
            ::unlinkat(s.fd, pointer<const char>(s.addr), static_cast<int>(s.unlink_flags)));
    case opcode::renameat:
        return checked(::renameat2(s.fd, pointer<const char>(s.addr), static_cast<int>(s.len),
                                   pointer<const char>(s.addr2), s.rename_flags));
    case opcode::mkdirat:
        return checked(::mkdirat(s.fd, pointer<const char>(s.addr), static_cast<::mode_t>(s.len)));
    case opcode::symlinkat:
        return checked(
            ::symlinkat(pointer<const char>(s.addr), s.fd, pointer<const char>(s.addr2)));
    case opcode::linkat:
        return checked(::linkat(s.fd, pointer<const char>(s.addr), static_cast<int>(s.len),
                                pointer<const char>(s.addr2), static_cast<int>(s.hardlink_flags)));
    default:
        return -EOPNOTSUPP;
    }
}

// ---- to the pool and back

int epoll_kernel::hand_over(epoll_request& r, bool endless) noexcept {
    if (r.selects()) {
        if (const int error = select(r); error != 0)
            return error;
        hold_selected(r);
    }
    keep(r);
    hold(r);
    if (r.on != nullptr && r.on->is_known_file())
        r.phase = on_file;
    r.job.owner = &r;
    r.job.run = &epoll_kernel::work;
    r.job.endless = endless;
    r.at = place::working;
    if (const int error = pool_->submit(r.job); error != 0) {
        r.at = place::nowhere;
        let_go(r);
        return error;
    }
    return pending;
}

/// Whoever wakes after the submission must find the waiter.
int epoll_kernel::wait_on_futex(epoll_request& r) noexcept {
    const int result = hand_over(r, true);
    if (result == pending)
        worker_pool::wait_until_asleep(r.job);
    return result;
}

void epoll_kernel::collect_finished() noexcept {
    for (worker_job* job = pool_->take_finished(); job != nullptr;) {
        worker_job* const next = job->next;
        epoll_request& r = *static_cast<epoll_request::its_job&>(*job).owner;
        int result = job->result;
        if (result == by_endless_worker) {
            if (!r.interrupting) {
                result = hand_over(r, true);
                job = next;
                if (result != pending)
                    finish(r, result);
                continue;
            }
            result = -EINTR;
        }
        if (r.interrupting) {
            --interrupting_;
            r.interrupting = false;
            if (result == -EINTR)
                result = -ECANCELED;
        }
        if (result >= 0 && (r.op() == opcode::openat || r.op() == opcode::openat2))
            fresh(result);
        finish(r, result);
        job = next;
    }
}

/// For nobody: the ring is closed.
void epoll_kernel::discard_finished() noexcept {
    for (worker_job* job = pool_->take_finished(); job != nullptr; job = job->next) {
        const epoll_request& r = *static_cast<epoll_request::its_job&>(*job).owner;
        if (job->result >= 0 && (r.op() == opcode::openat || r.op() == opcode::openat2))
            ::close(job->result);
    }
}

} // namespace coil::uring::detail
