#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/io/message.hpp>
#include <coil/io/owned_descriptor.hpp>
#include <coil/net/endpoint.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace coil::net {

/// The result of socket::recv_from():
///
///     auto [n, peer] = co_await socket.recv_from(buf);
struct received_from {
    io_result result;
    /// The sender's address. AF_UNSPEC if the call failed, on a connected stream, and if the sender
    /// is an unnamed Unix socket.
    endpoint peer;
};

/// The result of socket::recv_descriptors().
struct received_descriptors {
    /// Bytes received, or -errno.
    io_result result;
    /// The descriptors, close-on-exec, in the order in which they were sent.
    std::vector<io::owned_descriptor> descriptors;
    /// True if the process had reached RLIMIT_NOFILE; the kernel has closed the descriptors that
    /// did not fit.
    bool truncated = false;
};

/// The credentials of a Unix socket's peer at the time of its connect(2) or listen(2): SO_PEERCRED,
/// unix(7).
struct credentials {
    ::pid_t pid = 0;
    ::uid_t uid = 0;
    ::gid_t gid = 0;

    friend bool operator==(const credentials&, const credentials&) noexcept = default;
};

/// The maximum number of descriptors in one message: the kernel's SCM_MAX_FD.
inline constexpr std::size_t max_descriptors = 253;

namespace detail {

/// sendto with its own copy of the address.
class send_to_endpoint_element : public coil::detail::send_to_element {
public:
    send_to_endpoint_element(int fd, const_buffer buf, const endpoint& to) noexcept
        : send_to_element(fd, buf, MSG_NOSIGNAL, nullptr, 0), to_(to) {}

    coil::detail::sqe_slot& arm() noexcept {
        entry_.request.addr2 = reinterpret_cast<std::uintptr_t>(to_.data());
        entry_.request.addr_len = static_cast<std::uint16_t>(to_.size());
        return send_to_element::arm();
    }

private:
    endpoint to_;
};

/// recvmsg that stores the sender's address.
class receive_from_endpoint_element : public coil::detail::io_element {
public:
    static constexpr bool needs_result = true;

    receive_from_endpoint_element(int fd, mutable_buffer buf, int flags) noexcept
        : io_element(uring::prep::recvmsg(fd, nullptr, flags)), part_{buf.data(), buf.size()} {}

    coil::detail::sqe_slot& arm() noexcept {
        message_.msg_iov = &part_;
        message_.msg_iovlen = 1;
        message_.msg_name = &from_;
        message_.msg_namelen = sizeof from_;
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(&message_);
        return entry_;
    }
    [[nodiscard]] received_from result() noexcept;

private:
    ::msghdr message_{};
    ::iovec part_;
    ::sockaddr_storage from_{};
};

/// recvmsg with descriptors. If the result is discarded, they are closed (guarantee G4).
class receive_descriptors_element : public coil::detail::io_element {
public:
    static constexpr bool needs_result = true;

    receive_descriptors_element(int fd, mutable_buffer buf) noexcept
        : io_element(uring::prep::recvmsg(fd, nullptr, MSG_CMSG_CLOEXEC)),
          part_{buf.data(), buf.size()} {}

    coil::detail::sqe_slot& arm() noexcept {
        message_.msg_iov = &part_;
        message_.msg_iovlen = 1;
        message_.msg_control = control_;
        message_.msg_controllen = sizeof control_;
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(&message_);
        return entry_;
    }
    [[nodiscard]] received_descriptors result() noexcept;
    void drop() noexcept { static_cast<void>(result()); }

private:
    ::msghdr message_{};
    ::iovec part_;
    alignas(::cmsghdr) std::byte control_[CMSG_SPACE(max_descriptors * sizeof(int))];
};

} // namespace detail

} // namespace coil::net
