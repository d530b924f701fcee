#include "system_calls.hpp"

#include <coil/uring/backend.hpp>
#include <coil/uring/perform.hpp>

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace coil::uring {

namespace {

using detail::checked;
using detail::path;
using detail::pointer;
using detail::system_call;

int close(const sqe& request) noexcept {
    return request.fd < first_world_descriptor ? checked(::close(request.fd)) : -EBADF;
}

/// Offset -1 is the current position, as in a ring.
int read(const sqe& request) noexcept {
    auto* const to = pointer<void>(request.addr);
    return checked(request.off == ~std::uint64_t{0}
                       ? ::read(request.fd, to, request.len)
                       : ::pread(request.fd, to, request.len, static_cast<::off_t>(request.off)));
}
int write(const sqe& request) noexcept {
    const auto* const from = pointer<const void>(request.addr);
    return checked(request.off == ~std::uint64_t{0} ? ::write(request.fd, from, request.len)
                                                    : ::pwrite(request.fd, from, request.len,
                                                               static_cast<::off_t>(request.off)));
}

int fsync(const sqe& request) noexcept {
    const bool data_alone = (request.fsync_flags & fsync_flag::datasync) != 0;
    return checked(data_alone ? ::fdatasync(request.fd) : ::fsync(request.fd));
}

int lseek(const sqe& request) noexcept {
    const ::off_t at =
        ::lseek(request.fd, static_cast<::off_t>(request.off), static_cast<int>(request.len));
    if (at < 0) {
        return -errno;
    }
    *pointer<std::int64_t>(request.addr) = at;
    return 0;
}

/// Calls for which io_uring has no opcode; they, too, may wait for a device.
system_call call_without_ring_opcode(const sqe& request) noexcept {
    switch (static_cast<call_opcode>(request.opcode)) {
    case call_opcode::getdents64:
        return [](const sqe& r) {
            return checked(::syscall(SYS_getdents64, r.fd, pointer<void>(r.addr), r.len));
        };
    case call_opcode::readlinkat:
        return [](const sqe& r) {
            return checked(::readlinkat(r.fd, path(r), pointer<char>(r.addr2), r.len));
        };
    case call_opcode::faccessat:
        return [](const sqe& r) {
            return checked(::faccessat(r.fd, path(r), static_cast<int>(r.len),
                                       static_cast<int>(r.hardlink_flags)));
        };
    case call_opcode::lseek:
        return lseek;
    case call_opcode::fchmod:
        return [](const sqe& r) { return checked(::fchmod(r.fd, r.len)); };
    case call_opcode::fchmodat:
        return [](const sqe& r) {
            return checked(::fchmodat(r.fd, path(r), r.len, static_cast<int>(r.hardlink_flags)));
        };
    case call_opcode::fchownat:
        return [](const sqe& r) {
            const auto group = static_cast<::gid_t>(r.addr2);
            return checked(r.addr == 0 ? ::fchown(r.fd, r.len, group)
                                       : ::fchownat(r.fd, path(r), r.len, group,
                                                    static_cast<int>(r.hardlink_flags)));
        };
    case call_opcode::utimensat:
        return [](const sqe& r) {
            const auto* const times = pointer<const ::timespec>(r.addr2);
            return checked(r.addr == 0 ? ::futimens(r.fd, times)
                                       : ::utimensat(r.fd, path(r), times,
                                                     static_cast<int>(r.hardlink_flags)));
        };
    case call_opcode::statvfs:
        return [](const sqe& r) {
            auto* const into = pointer<struct ::statvfs>(r.addr2);
            return checked(r.addr == 0 ? ::fstatvfs(r.fd, into) : ::statvfs(path(r), into));
        };
    case call_opcode::socketpair:
        return [](const sqe& r) {
            return checked(::socketpair(r.fd, static_cast<int>(r.len), static_cast<int>(r.off),
                                        pointer<int>(r.addr)));
        };
    case call_opcode::epoll_create1:
        return [](const sqe& r) { return checked(::epoll_create1(static_cast<int>(r.off))); };
    case call_opcode::eventfd:
        return [](const sqe& r) { return checked(::eventfd(r.len, static_cast<int>(r.off))); };
    case call_opcode::timerfd_create:
        return
            [](const sqe& r) { return checked(::timerfd_create(r.fd, static_cast<int>(r.off))); };
    case call_opcode::timerfd_settime:
        return [](const sqe& r) {
            return checked(::timerfd_settime(r.fd, static_cast<int>(r.off),
                                             pointer<const ::itimerspec>(r.addr), nullptr));
        };
    default:
        return nullptr;
    }
}

/// Calls that may wait for a device, or for the other end of a file.
system_call slow_call_for(const sqe& request) noexcept {
    switch (static_cast<opcode>(request.opcode)) {
    case opcode::close:
        return request.file_index == 0 ? close : nullptr; // otherwise a slot of the ring's table
    case opcode::read:
        return read;
    case opcode::write:
        return write;
    case opcode::fsync:
        return fsync;
    case opcode::fallocate:
        return [](const sqe& r) {
            return checked(::fallocate(r.fd, static_cast<int>(r.len), static_cast<::off_t>(r.off),
                                       static_cast<::off_t>(r.addr)));
        };
    case opcode::openat:
        if (request.file_index != 0) {
            return nullptr; // the result would go into the ring's table
        }
        return [](const sqe& r) {
            return checked(::openat(r.fd, path(r), static_cast<int>(r.open_flags), r.len));
        };
    case opcode::statx:
        return [](const sqe& r) {
            return checked(::statx(r.fd, path(r), static_cast<int>(r.statx_flags), r.len,
                                   pointer<struct ::statx>(r.off)));
        };
    default:
        break;
    }
    return call_without_ring_opcode(request);
}

/// Whether the file or memory can be resolved only by a ring.
bool needs_ring(const sqe& request) noexcept {
    return (request.flags & (sqe_flag::fixed_file | sqe_flag::buffer_select)) != 0;
}

} // namespace

bool is_quick_on_linux(const sqe& request) noexcept {
    return !needs_ring(request) && detail::quick_call_for(request) != nullptr;
}

int perform_on_linux(const sqe& request) noexcept {
    if (needs_ring(request)) {
        return -EOPNOTSUPP;
    }
    system_call call = detail::quick_call_for(request);
    if (call == nullptr) {
        call = slow_call_for(request);
    }
    return call != nullptr ? call(request) : -EOPNOTSUPP;
}

int backend::perform(const sqe& request) noexcept { return perform_on_linux(request); }

} // namespace coil::uring
