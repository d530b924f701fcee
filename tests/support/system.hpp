#pragma once

#include <coil/sim/host.hpp>
#include <coil/sim/world.hpp>
#include <coil/uring/perform.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

// System calls that tests make outside of a context: of Linux, or of the simulated host in which
// the test runs.

namespace coil_test::sys {

/// The host to which the calls go; null: Linux. Not thread_local, because a world may execute turns
/// on several threads, one at a time.
constinit inline coil::sim::host* here = nullptr;
/// The world of that host.
constinit inline coil::sim::world* around = nullptr;

namespace prep = coil::uring::prep;

/// Converts to the convention of system calls: -1 and errno.
inline int as_errno(int result) noexcept {
    if (result < 0) {
        errno = -result;
        return -1;
    }
    return result;
}
inline int perform(const coil::uring::sqe& request) noexcept {
    return as_errno(here->perform(request));
}

inline int close(int fd) noexcept {
    return here != nullptr ? perform(prep::close(fd)) : ::close(fd);
}
inline int pipe2(int* fds, int flags) noexcept {
    return here != nullptr ? perform(prep::pipe(fds, flags)) : ::pipe2(fds, flags);
}
inline int socketpair(int type, int* fds) {
    if (here == nullptr) {
        return ::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds);
    }
    const auto [a, b] = here->socket_pair(type);
    fds[0] = a;
    fds[1] = b;
    return 0;
}
inline int socket(int family, int type) noexcept {
    return here != nullptr ? perform(prep::socket(family, type, 0)) : ::socket(family, type, 0);
}
inline int bind(int fd, const ::sockaddr* address, ::socklen_t length) noexcept {
    return here != nullptr ? perform(prep::bind(fd, address, length)) : ::bind(fd, address, length);
}
inline int listen(int fd, int backlog) noexcept {
    return here != nullptr ? perform(prep::listen(fd, backlog)) : ::listen(fd, backlog);
}
inline int getsockname(int fd, ::sockaddr* address, ::socklen_t* length) noexcept {
    return here != nullptr ? perform(prep::getsockname(fd, address, length))
                           : ::getsockname(fd, address, length);
}
inline int shutdown(int fd, int how) noexcept {
    return here != nullptr ? perform(prep::shutdown(fd, how)) : ::shutdown(fd, how);
}
inline ::ssize_t write(int fd, const void* data, std::size_t size) noexcept {
    return here != nullptr
               ? perform(prep::write(fd, data, static_cast<unsigned>(size), prep::current_position))
               : ::write(fd, data, size);
}
/// Writes without waiting.
inline ::ssize_t write_now(int fd, const void* data, std::size_t size) noexcept {
    if (here != nullptr) {
        return write(fd, data, size);
    }
    const ::iovec part{const_cast<void*>(data), size};
    return ::pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
}
inline ::ssize_t send(int fd, const void* data, std::size_t size, int flags) noexcept {
    return here != nullptr ? perform(prep::send(fd, data, size, flags))
                           : ::send(fd, data, size, flags);
}
/// In a simulated world the connection is established while the world runs.
inline int connect(int fd, const ::sockaddr* address, ::socklen_t length) noexcept {
    if (here == nullptr) {
        return ::connect(fd, address, length);
    }
    const int result = here->perform(prep::connect(fd, address, length));
    return result == -EINPROGRESS ? 0 : as_errno(result);
}
inline int setsockopt(int fd, int level, int name, const void* value, ::socklen_t length) noexcept {
    return here != nullptr ? perform(prep::setsockopt(fd, level, name, value, length))
                           : ::setsockopt(fd, level, name, value, length);
}
/// Calls `f` after `time` on another thread, for which the handle's destructor waits. In a
/// simulated world, calls it between two turns.
template <class F>
[[nodiscard]] std::jthread later(std::chrono::nanoseconds time, F f) {
    if (around != nullptr) {
        around->after(time, std::move(f));
        return {};
    }
    return std::jthread([time, f = std::move(f)]() mutable {
        std::this_thread::sleep_for(time);
        f();
    });
}
/// A file without a name.
inline int memfd(const char* name) noexcept {
    return here != nullptr ? perform(prep::openat(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600))
                           : ::memfd_create(name, MFD_CLOEXEC);
}
/// Identifies a file; returns false if `fd` is not open.
inline bool identity(int fd, struct ::statx& of) noexcept {
    return here != nullptr
               ? perform(prep::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &of)) == 0
               : ::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &of) == 0;
}

} // namespace coil_test::sys
