#include "system_calls.hpp"

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

namespace coil::uring::detail {

namespace {

/// getsockname(2) and getpeername(2); `optval` points to the length.
int socket_name(const sqe& request) noexcept {
    auto* const address = pointer<::sockaddr>(request.addr);
    auto* const length = pointer<::socklen_t>(request.optval);
    return checked(request.optlen != 0 ? ::getpeername(request.fd, address, length)
                                       : ::getsockname(request.fd, address, length));
}

int command_to_socket(const sqe& request) noexcept {
    const auto level = static_cast<int>(request.sockopt.level);
    const auto name = static_cast<int>(request.sockopt.optname);
    void* const value = pointer<void>(request.optval);
    ::socklen_t length = request.optlen;
    switch (request.cmd_op) {
    case socket_command::getsockopt: {
        const int error = checked(::getsockopt(request.fd, level, name, value, &length));
        return error < 0 ? error : static_cast<int>(length);
    }
    case socket_command::setsockopt:
        return checked(::setsockopt(request.fd, level, name, value, length));
    case socket_command::getsockname:
        return socket_name(request);
    default:
        return -EOPNOTSUPP;
    }
}

/// io_uring looks up the descriptor before the length; ftruncate(2) does the opposite.
int truncate_file(const sqe& request) noexcept {
    const int error = checked(::ftruncate(request.fd, static_cast<::off_t>(request.off)));
    if (error != -EINVAL) {
        return error;
    }
    const int flags = ::fcntl(request.fd, F_GETFL);
    return flags < 0 || (flags & O_PATH) != 0 ? -EBADF : error;
}

int futex_wake(const sqe& request) noexcept {
    constexpr int wake_bitset = 10; // FUTEX_WAKE_BITSET
    const auto flags = static_cast<std::uint32_t>(request.fd);
    constexpr std::uint32_t known = futex_flag::size_u32 | futex_flag::private_;
    if ((flags & ~known) != 0 || (flags & futex_flag::size_u32) == 0 ||
        request.addr3 > futex_match_any) {
        return -EINVAL;
    }
    if (request.off == 0) {
        return 0; // futex(2) would wake one
    }
    const auto count = std::min<std::uint64_t>(request.off, std::numeric_limits<int>::max());
    const auto op = wake_bitset | static_cast<int>(flags & futex_flag::private_);
    return checked(::syscall(SYS_futex, pointer<void>(request.addr), op, static_cast<int>(count),
                             nullptr, nullptr, static_cast<std::uint32_t>(request.addr3)));
}

int waitid(const sqe& request) noexcept {
    const auto options = static_cast<int>(request.file_index);
    return checked(::waitid(static_cast<::idtype_t>(request.len), static_cast<::id_t>(request.fd),
                            pointer<::siginfo_t>(request.addr2), options));
}

const char* second_path(const sqe& request) noexcept { return pointer<const char>(request.addr2); }
int second_dirfd(const sqe& request) noexcept { return static_cast<int>(request.len); }

// Extended attributes.
const char* name(const sqe& request) noexcept { return pointer<const char>(request.addr); }
void* value(const sqe& request) noexcept { return pointer<void>(request.addr2); }
const char* owner(const sqe& request) noexcept { return pointer<const char>(request.addr3); }
int attribute_flags(const sqe& request) noexcept { return static_cast<int>(request.xattr_flags); }

/// Changes of directories, and extended attributes.
system_call call_on_path_or_attribute(const sqe& request) noexcept {
    switch (static_cast<opcode>(request.opcode)) {
    case opcode::unlinkat:
        return [](const sqe& r) {
            return checked(::unlinkat(r.fd, path(r), static_cast<int>(r.unlink_flags)));
        };
    case opcode::renameat:
        return [](const sqe& r) {
            return checked(
                ::renameat2(r.fd, path(r), second_dirfd(r), second_path(r), r.rename_flags));
        };
    case opcode::mkdirat:
        return [](const sqe& r) { return checked(::mkdirat(r.fd, path(r), r.len)); };
    case opcode::symlinkat:
        return [](const sqe& r) { return checked(::symlinkat(path(r), r.fd, second_path(r))); };
    case opcode::linkat:
        return [](const sqe& r) {
            return checked(::linkat(r.fd, path(r), second_dirfd(r), second_path(r),
                                    static_cast<int>(r.hardlink_flags)));
        };
    case opcode::getxattr:
        return [](const sqe& r) { return checked(::getxattr(owner(r), name(r), value(r), r.len)); };
    case opcode::setxattr:
        return [](const sqe& r) {
            return checked(::setxattr(owner(r), name(r), value(r), r.len, attribute_flags(r)));
        };
    case opcode::fgetxattr:
        return [](const sqe& r) { return checked(::fgetxattr(r.fd, name(r), value(r), r.len)); };
    case opcode::fsetxattr:
        return [](const sqe& r) {
            return checked(::fsetxattr(r.fd, name(r), value(r), r.len, attribute_flags(r)));
        };
    default:
        return nullptr;
    }
}

} // namespace

system_call quick_call_for(const sqe& request) noexcept {
    switch (static_cast<opcode>(request.opcode)) {
    case opcode::socket:
        if (request.file_index != 0) {
            return nullptr; // the result would go into the ring's table
        }
        return [](const sqe& r) {
            return checked(::socket(r.fd, static_cast<int>(r.off), static_cast<int>(r.len)));
        };
    case opcode::pipe:
        if (request.file_index != 0) {
            return nullptr; // the result would go into the ring's table
        }
        return [](const sqe& r) {
            return checked(::pipe2(pointer<int>(r.addr), static_cast<int>(r.pipe_flags)));
        };
    case opcode::waitid:
        return (request.file_index & WNOHANG) != 0 ? waitid : nullptr;
    case opcode::bind:
        return [](const sqe& r) {
            return checked(
                ::bind(r.fd, pointer<const ::sockaddr>(r.addr), static_cast<::socklen_t>(r.addr2)));
        };
    case opcode::listen:
        return [](const sqe& r) { return checked(::listen(r.fd, static_cast<int>(r.len))); };
    case opcode::shutdown:
        return [](const sqe& r) { return checked(::shutdown(r.fd, static_cast<int>(r.len))); };
    case opcode::uring_cmd:
        return command_to_socket;
    case opcode::ftruncate:
        return truncate_file;
    case opcode::epoll_ctl:
        return [](const sqe& r) {
            return checked(::epoll_ctl(r.fd, static_cast<int>(r.len), static_cast<int>(r.off),
                                       pointer<::epoll_event>(r.addr)));
        };
    case opcode::futex_wake:
        return futex_wake;
    default:
        return call_on_path_or_attribute(request);
    }
}

} // namespace coil::uring::detail
