#pragma once

#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <ctime>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

// Synchronous calls, described as submission entries: for code that cannot await a completion
// (constructors, destructors), and for calls that io_uring lacks. backend::perform() executes the
// entries on the backend that the program uses.

namespace coil::uring {

/// The first descriptor of backends with files of their own (backend::has_own_world). Such a number
/// is never passed to Linux.
inline constexpr int first_world_descriptor = 1 << 24;

/// Opcodes for backend::perform only: system calls that io_uring lacks. Rings reject them.
enum class call_opcode : std::uint8_t {
    getdents64 = 240,      // fd, addr: buffer, len
    readlinkat = 241,      // fd, addr: path, addr2: buffer, len
    faccessat = 242,       // fd, addr: path, len: mode, hardlink_flags: AT_EACCESS ...
    lseek = 243,           // fd, off, len: whence, addr: std::int64_t*, the new position
    fchmod = 244,          // fd, len: mode
    fchmodat = 245,        // fd, addr: path, len: mode, hardlink_flags: AT_SYMLINK_NOFOLLOW
    fchownat = 246,        // fd, addr: path, or null for fd itself, len: owner, addr2: group, flags
    utimensat = 247,       // fd, addr: path, or null for fd itself, addr2: two timespec, flags
    statvfs = 248,         // addr: path, or null for fd itself, addr2: struct statvfs*
    socketpair = 249,      // fd: domain, len: type, off: protocol, addr: int[2]
    epoll_create1 = 250,   // off: flags
    eventfd = 251,         // off: flags, len: initial value
    timerfd_create = 252,  // fd: clock, off: flags
    timerfd_settime = 253, // fd, off: flags, addr: itimerspec*
};

namespace prep {

/// getdents64(2).
inline sqe getdents64(int fd, void* buffer, std::size_t size) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::getdents64);
    s.fd = fd;
    s.addr = reinterpret_cast<std::uintptr_t>(buffer);
    s.len = static_cast<std::uint32_t>(size);
    return s;
}

/// socketpair(2).
inline sqe socketpair(int domain, int type, int protocol, int* fds) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::socketpair);
    s.fd = domain;
    s.len = static_cast<std::uint32_t>(type);
    s.off = static_cast<std::uint64_t>(protocol);
    s.addr = reinterpret_cast<std::uintptr_t>(fds);
    return s;
}

/// readlinkat(2).
inline sqe readlinkat(int dirfd, const char* path, char* buffer, std::size_t size) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::readlinkat);
    s.fd = dirfd;
    s.addr = reinterpret_cast<std::uintptr_t>(path);
    s.addr2 = reinterpret_cast<std::uintptr_t>(buffer);
    s.len = static_cast<std::uint32_t>(size);
    return s;
}

/// faccessat(2).
inline sqe faccessat(int dirfd, const char* path, int mode, int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::faccessat);
    s.fd = dirfd;
    s.addr = reinterpret_cast<std::uintptr_t>(path);
    s.len = static_cast<std::uint32_t>(mode);
    s.hardlink_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// lseek(2): returns 0 and stores the position in `*at`.
inline sqe lseek(int fd, std::int64_t offset, int whence, std::int64_t* at) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::lseek);
    s.fd = fd;
    s.off = static_cast<std::uint64_t>(offset);
    s.addr = reinterpret_cast<std::uintptr_t>(at);
    s.len = static_cast<std::uint32_t>(whence);
    return s;
}

/// fchmod(2).
constexpr sqe fchmod(int fd, std::uint32_t mode) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::fchmod);
    s.fd = fd;
    s.len = mode;
    return s;
}

/// fchmodat(2).
inline sqe fchmodat(int dirfd, const char* path, std::uint32_t mode, int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::fchmodat);
    s.fd = dirfd;
    s.addr = reinterpret_cast<std::uintptr_t>(path);
    s.len = mode;
    s.hardlink_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// fchownat(2), or fchown(2) if `path` is null.
inline sqe fchownat(int dirfd, const char* path, ::uid_t owner, ::gid_t group, int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::fchownat);
    s.fd = dirfd;
    s.addr = reinterpret_cast<std::uintptr_t>(path);
    s.len = owner;
    s.addr2 = group;
    s.hardlink_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// utimensat(2), or futimens(3) if `path` is null. `times`: access and modification time, or null
/// for now.
inline sqe utimensat(int dirfd, const char* path, const ::timespec* times, int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::utimensat);
    s.fd = dirfd;
    s.addr = reinterpret_cast<std::uintptr_t>(path);
    s.addr2 = reinterpret_cast<std::uintptr_t>(times);
    s.hardlink_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// statvfs(3), or fstatvfs(3) if `path` is null.
inline sqe statvfs(int fd, const char* path, struct ::statvfs* into) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::statvfs);
    s.fd = fd;
    s.addr = reinterpret_cast<std::uintptr_t>(path);
    s.addr2 = reinterpret_cast<std::uintptr_t>(into);
    return s;
}

/// epoll_create1(2).
constexpr sqe epoll_create1(int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::epoll_create1);
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

/// eventfd(2).
constexpr sqe eventfd(unsigned initial, int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::eventfd);
    s.len = initial;
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

/// timerfd_create(2).
constexpr sqe timerfd_create(int clock, int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::timerfd_create);
    s.fd = clock;
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

/// timerfd_settime(2), without the old value.
inline sqe timerfd_settime(int fd, int flags, const ::itimerspec* spec) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(call_opcode::timerfd_settime);
    s.fd = fd;
    s.addr = reinterpret_cast<std::uintptr_t>(spec);
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

} // namespace prep

/// Executes `request` with the plain system call; the default implementation of backend::perform.
/// Supported: opening, closing, reading, writing and synchronizing files; creating and removing
/// names; creating, binding and shutting down sockets, listen, socket options; pipe, eventfd,
/// timers, epoll_create1 and epoll_ctl, futex_wake, waitid with WNOHANG. Returns what a ring would
/// report (getsockopt: the option's length). -EOPNOTSUPP for everything else, and for direct
/// descriptors and provided buffers; -EBADF for descriptors from first_world_descriptor on.
int perform_on_linux(const sqe& request) noexcept;

/// Whether perform_on_linux() supports the call and never waits for another party or a device. Such
/// a call may be made on a loop's thread if the ring lacks the opcode.
bool is_quick_on_linux(const sqe& request) noexcept;

} // namespace coil::uring
