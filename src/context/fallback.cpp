#include <coil/context/fallback.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <limits>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace coil::detail {

namespace {

template <class T>
int checked(T result) noexcept {
    return result < 0 ? -errno : static_cast<int>(result);
}

template <class T>
T* pointer(std::uint64_t address) noexcept {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

int socket_command(const uring::sqe& request) noexcept {
    const auto level = static_cast<int>(request.sockopt.level);
    const auto name = static_cast<int>(request.sockopt.optname);
    void* const value = pointer<void>(request.optval);
    ::socklen_t length = request.optlen;
    switch (request.cmd_op) {
    case uring::socket_command::getsockopt: {
        const int error = checked(::getsockopt(request.fd, level, name, value, &length));
        return error < 0 ? error : static_cast<int>(length);
    }
    case uring::socket_command::setsockopt:
        return checked(::setsockopt(request.fd, level, name, value, length));
    default:
        return -EOPNOTSUPP;
    }
}

int attribute(const uring::sqe& request) noexcept {
    const auto* const name = pointer<const char>(request.addr);
    void* const value = pointer<void>(request.addr2);
    const auto* const path = pointer<const char>(request.addr3);
    const auto flags = static_cast<int>(request.xattr_flags);
    switch (static_cast<uring::opcode>(request.opcode)) {
    case uring::opcode::getxattr:
        return checked(::getxattr(path, name, value, request.len));
    case uring::opcode::setxattr:
        return checked(::setxattr(path, name, value, request.len, flags));
    case uring::opcode::fgetxattr:
        return checked(::fgetxattr(request.fd, name, value, request.len));
    default:
        return checked(::fsetxattr(request.fd, name, value, request.len, flags));
    }
}

int futex_wake(const uring::sqe& request) noexcept {
    constexpr int wake_bitset = 10; // FUTEX_WAKE_BITSET
    const auto flags = static_cast<std::uint32_t>(request.fd);
    constexpr std::uint32_t known = uring::futex_flag::size_u32 | uring::futex_flag::private_;
    if ((flags & ~known) != 0 || (flags & uring::futex_flag::size_u32) == 0 ||
        request.addr3 > uring::futex_match_any) {
        return -EINVAL;
    }
    if (request.off == 0) {
        return 0; // the older call would wake one
    }
    const auto count = std::min<std::uint64_t>(request.off, std::numeric_limits<int>::max());
    const auto op = wake_bitset | static_cast<int>(flags & uring::futex_flag::private_);
    return checked(::syscall(SYS_futex, pointer<void>(request.addr), op, static_cast<int>(count),
                             nullptr, nullptr, static_cast<std::uint32_t>(request.addr3)));
}

int waitid(const uring::sqe& request) noexcept {
    const auto options = static_cast<int>(request.file_index);
    return checked(::waitid(static_cast<::idtype_t>(request.len), static_cast<::id_t>(request.fd),
                            pointer<::siginfo_t>(request.addr2), options));
}

} // namespace

bool can_perform_directly(const uring::sqe& request) noexcept {
    if ((request.flags & uring::sqe_flag::fixed_file) != 0) {
        return false; // only the ring knows what file that is
    }
    switch (static_cast<uring::opcode>(request.opcode)) {
    case uring::opcode::socket:
    case uring::opcode::pipe:
        return request.file_index == 0; // not into the ring's table
    case uring::opcode::waitid:
        return (request.file_index & WNOHANG) != 0;
    case uring::opcode::bind:
    case uring::opcode::listen:
    case uring::opcode::shutdown:
    case uring::opcode::uring_cmd:
    case uring::opcode::ftruncate:
    case uring::opcode::epoll_ctl:
    case uring::opcode::futex_wake:
    case uring::opcode::unlinkat:
    case uring::opcode::renameat:
    case uring::opcode::mkdirat:
    case uring::opcode::symlinkat:
    case uring::opcode::linkat:
    case uring::opcode::getxattr:
    case uring::opcode::setxattr:
    case uring::opcode::fgetxattr:
    case uring::opcode::fsetxattr:
        return true;
    default:
        return false;
    }
}

int perform_directly(const uring::sqe& request) noexcept {
    if (!can_perform_directly(request)) {
        return -EOPNOTSUPP;
    }
    const auto* const address = pointer<const ::sockaddr>(request.addr);
    const auto* const path = pointer<const char>(request.addr);
    const auto* const second_path = pointer<const char>(request.addr2);
    const auto second_dirfd = static_cast<int>(request.len);
    switch (static_cast<uring::opcode>(request.opcode)) {
    case uring::opcode::socket:
        return checked(
            ::socket(request.fd, static_cast<int>(request.off), static_cast<int>(request.len)));
    case uring::opcode::bind:
        return checked(::bind(request.fd, address, static_cast<::socklen_t>(request.addr2)));
    case uring::opcode::listen:
        return checked(::listen(request.fd, static_cast<int>(request.len)));
    case uring::opcode::shutdown:
        return checked(::shutdown(request.fd, static_cast<int>(request.len)));
    case uring::opcode::pipe:
        return checked(::pipe2(pointer<int>(request.addr), static_cast<int>(request.pipe_flags)));
    case uring::opcode::ftruncate:
        return checked(::ftruncate(request.fd, static_cast<::off_t>(request.off)));
    case uring::opcode::uring_cmd:
        return socket_command(request);
    case uring::opcode::epoll_ctl:
        return checked(::epoll_ctl(request.fd, static_cast<int>(request.len),
                                   static_cast<int>(request.off),
                                   pointer<::epoll_event>(request.addr)));
    case uring::opcode::futex_wake:
        return futex_wake(request);
    case uring::opcode::waitid:
        return waitid(request);
    case uring::opcode::unlinkat:
        return checked(::unlinkat(request.fd, path, static_cast<int>(request.unlink_flags)));
    case uring::opcode::renameat:
        return checked(
            ::renameat2(request.fd, path, second_dirfd, second_path, request.rename_flags));
    case uring::opcode::mkdirat:
        return checked(::mkdirat(request.fd, path, request.len));
    case uring::opcode::symlinkat:
        return checked(::symlinkat(path, request.fd, second_path));
    case uring::opcode::linkat:
        return checked(::linkat(request.fd, path, second_dirfd, second_path,
                                static_cast<int>(request.hardlink_flags)));
    case uring::opcode::getxattr:
    case uring::opcode::setxattr:
    case uring::opcode::fgetxattr:
    case uring::opcode::fsetxattr:
        return attribute(request);
    default:
        return -EOPNOTSUPP;
    }
}

} // namespace coil::detail
