#include "../opcode_kinds.hpp"
#include "../system_calls.hpp"
#include "epoll_backend_impl.hpp"

#include <coil/uring/perform.hpp>

#include <cerrno>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// The jobs that the threads of the pool execute.

namespace coil::uring::detail {
namespace {

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

/// Transfers the rest after `done` bytes, as read(2) and io_uring do on a file: until everything is
/// transferred or the file ends.
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
        // Usually no element is partly transferred, and one call transfers all of them.
        ::iovec head{static_cast<std::byte*>(parts[i].iov_base) + skip, parts[i].iov_len - skip};
        const ::iovec* from = skip == 0 ? &parts[i] : &head;
        const int count = skip == 0 ? static_cast<int>(parts.size() - i) : 1;
        std::size_t asked = 0;
        for (int k = 0; k < count; ++k) {
            asked += from[k].iov_len;
        }
        const ::off_t offset =
            r.entry.off == ~std::uint64_t{0} ? -1 : static_cast<::off_t>(r.entry.off + done);
        ssize_t n = in ? ::preadv2(r.file, from, count, offset, flags)
                       : ::pwritev2(r.file, from, count, offset, flags);
        if (n < 0 && errno == ESPIPE && offset != -1) {
            n = in ? ::readv(r.file, from, count) : ::writev(r.file, from, count);
        }
        if (n < 0 && errno == EINTR && !r.job.cancelled.load()) {
            continue;
        }
        if (n < 0) {
            return done != 0 ? static_cast<int>(done) : -errno;
        }
        done += static_cast<std::uint32_t>(n);
        if (n == 0 || static_cast<std::size_t>(n) < asked) {
            if (n == 0 || r.phase != epoll_request::on_file) {
                return static_cast<int>(done);
            }
        }
        skip += static_cast<std::size_t>(n);
    }
    return static_cast<int>(done);
}

/// Whether the call may wait for another process, as opening a FIFO may. It then needs an unbounded
/// worker: a bounded one serves calls that end by themselves.
bool waits_for_other_side(const epoll_request& r) noexcept {
    struct ::stat status{};
    const sqe& s = r.entry;
    return ::fstatat(s.fd, pointer<const char>(s.addr), &status, 0) == 0 &&
           S_ISFIFO(status.st_mode);
}

int splice(const epoll_request& r) noexcept {
    const sqe& s = r.entry;
    auto in = static_cast<::loff_t>(s.splice_off_in);
    auto out = static_cast<::loff_t>(s.off);
    return checked(::splice(r.file_in, in == -1 ? nullptr : &in, r.file, out == -1 ? nullptr : &out,
                            s.len, s.splice_flags & ~splice_flag::fd_in_fixed));
}

} // namespace

int epoll_backend::wait_for_child(const sqe& s) noexcept {
    ::siginfo_t info{};
    const int options = static_cast<int>(s.file_index);
    if (::waitid(static_cast<::idtype_t>(s.len), static_cast<::id_t>(s.fd), &info, options) != 0) {
        return -errno;
    }
    return store_child(s, info);
}

/// Waits for space if the socket is in blocking mode.
int epoll_backend::send_data(epoll_request& r) noexcept {
    ::msghdr message = message_of(r);
    message.msg_iov = r.data().data();
    message.msg_iovlen = r.data().size();
    return checked(::sendmsg(r.file, &message, static_cast<int>(r.entry.msg_flags) | MSG_NOSIGNAL));
}

/// Runs on a thread of the pool.
int epoll_backend::work(worker_job& job) noexcept {
    epoll_request& r = *static_cast<epoll_request::own_job&>(job).owner;
    if (job.cancelled.load()) {
        return -EINTR;
    }
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
    case opcode::sendmsg_zc:
        return send_data(r);
    case opcode::connect:
        return checked(
            ::connect(r.file, pointer<const ::sockaddr>(s.addr), static_cast<::socklen_t>(s.off)));
    case opcode::splice:
        return splice(r);
    case opcode::tee:
        return checked(::tee(r.file_in, r.file, s.len, s.splice_flags & ~splice_flag::fd_in_fixed));
    case opcode::openat:
        if (!job.unbounded && waits_for_other_side(r)) {
            return by_unbounded_worker;
        }
        return checked(::openat(s.fd, pointer<const char>(s.addr), static_cast<int>(s.open_flags),
                                static_cast<::mode_t>(s.len)));
    case opcode::openat2:
        if (!job.unbounded && waits_for_other_side(r)) {
            return by_unbounded_worker;
        }
        return checked(::syscall(SYS_openat2, s.fd, pointer<const char>(s.addr),
                                 pointer<void>(s.addr2), static_cast<std::size_t>(s.len)));
    case opcode::futex_wait:
        job.sleeper.store(static_cast<int>(::syscall(SYS_gettid)));
        return futex_wait(s);
    case opcode::futex_waitv:
        job.sleeper.store(static_cast<int>(::syscall(SYS_gettid)));
        return checked(::syscall(SYS_futex_waitv, pointer<void>(s.addr), s.len, 0U, nullptr, 0));
    case opcode::waitid:
        return wait_for_child(s);
    case opcode::sync_file_range:
        return checked(
            ::sync_file_range(r.file, static_cast<::off_t>(s.off), s.len, s.sync_range_flags));
    case opcode::fadvise:
        return -::posix_fadvise(r.file, static_cast<::off_t>(s.off),
                                static_cast<::off_t>(s.addr != 0 ? s.addr : s.len),
                                static_cast<int>(s.fadvise_advice));
    case opcode::madvise:
        return checked(::madvise(pointer<void>(s.addr), s.off != 0 ? s.off : s.len,
                                 static_cast<int>(s.fadvise_advice)));
    default:
        return plain_call(r);
    }
}

} // namespace coil::uring::detail
