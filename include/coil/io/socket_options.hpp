#pragma once

#include <coil/context/operation.hpp>
#include <coil/context/perform.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>
#include <limits>

#include <sys/socket.h>

// Options of sockets. The ring takes them as commands to the socket (IORING_OP_URING_CMD, Linux
// 6.7), and knows setsockopt(2) for every level but getsockopt(2) for SOL_SOCKET alone. What it
// refuses is done by the system call when its answer arrives, within the same await and also in a
// chain (where that takes a turn through the program); options never wait for a peer. That needs a
// plain descriptor: on a direct one, what the ring lacks gives -EOPNOTSUPP. So does anything that
// is no socket, where the system call says -ENOTSOCK.

namespace coil {

namespace detail {

/// A command to a socket, and the system call where the ring has none for it.
class socket_option_element : public io_element {
public:
    explicit socket_option_element(const uring::sqe& request) noexcept : io_element(request) {
        entry_.flags = not_asked;
    }

    io_result result() noexcept {
        if (entry_.result == -EOPNOTSUPP && entry_.flags != not_asked) {
            entry_.result = perform(entry_.request);
        }
        return io_element::result();
    }

private:
    /// What no answer carries: the kernel has not seen the request.
    static constexpr std::uint32_t not_asked = uring::cqe_flag::skip;
};

/// getsockopt(2), whose length goes both ways: the ring takes it by value and answers with it.
class get_option_element : public socket_option_element {
public:
    static constexpr bool needs_result = true;

    get_option_element(io::descriptor fd, int level, int name, void* value,
                       ::socklen_t* length) noexcept
        : socket_option_element(
              request_on(fd, uring::prep::getsockopt(fd.number(), level, name, value, 0))),
          length_(length) {}

    ring_entry& arm() noexcept {
        if (length_ != nullptr) {
            entry_.request.optlen = *length_;
        } else { // a bad address, as for the system call
            entry_.request.optval = 0;
            entry_.request.optlen = std::numeric_limits<int>::max();
        }
        return entry_;
    }
    io_result result() noexcept {
        const io_result length = socket_option_element::result();
        drop();
        return length < 0 ? length : io_result(0);
    }
    void drop() noexcept {
        if (entry_.completed && entry_.result >= 0 && length_ != nullptr) {
            *length_ = static_cast<::socklen_t>(entry_.result);
        }
    }

private:
    ::socklen_t* length_;
};

} // namespace detail

namespace io {

/// getsockopt(2): 0, the option in `*value` and its length in `*length`, which says how much room
/// there is when the await begins. Both are the caller's memory, must outlive the await, and stay
/// as they are when it fails.
///
/// IORING_OP_URING_CMD for SOL_SOCKET (Linux 6.7); other levels and kernels: the system call.
inline io_awaitable<detail::get_option_element>
getsockopt(descriptor fd, int level, int name, void* value, ::socklen_t* length) noexcept {
    return io_awaitable<detail::get_option_element>(
        detail::get_option_element(fd, level, name, value, length));
}

/// setsockopt(2): 0. The value must outlive the await.
///
/// IORING_OP_URING_CMD (Linux 6.7); other kernels: the system call.
inline io_awaitable<detail::socket_option_element>
setsockopt(descriptor fd, int level, int name, const void* value, ::socklen_t length) noexcept {
    return io_awaitable<detail::socket_option_element>(detail::socket_option_element(
        detail::request_on(fd, uring::prep::setsockopt(fd.number(), level, name, value, length))));
}

} // namespace io

} // namespace coil
