#include <coil/context/fallback.hpp>

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace coil::detail {

int perform_directly(const uring::sqe& request) noexcept {
    const auto checked = [](int result) { return result < 0 ? -errno : result; };
    if ((request.flags & uring::sqe_flag::fixed_file) != 0) {
        return -EOPNOTSUPP; // only the ring knows what file that is
    }
    const auto* address = reinterpret_cast<const ::sockaddr*>(request.addr);
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
        return checked(
            ::pipe2(reinterpret_cast<int*>(request.addr), static_cast<int>(request.pipe_flags)));
    case uring::opcode::ftruncate:
        return checked(::ftruncate(request.fd, static_cast<::off_t>(request.off)));
    default:
        return -EOPNOTSUPP;
    }
}

} // namespace coil::detail
