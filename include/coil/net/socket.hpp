#pragma once

#include <coil/compose/link.hpp>
#include <coil/compose/time_limit.hpp>
#include <coil/context/detail/descriptor_owners.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/io/message.hpp>
#include <coil/io/socket.hpp>
#include <coil/net/detail/socket_element.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/message.hpp>

#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

namespace coil::net {

/// The result of a call that completes at once: an io_result that may also be awaited.
class immediate_result : public io_result {
public:
    explicit immediate_result(io_result result) noexcept : io_result(result) {}

    [[nodiscard]] bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    [[nodiscard]] io_result await_resume() const noexcept { return *this; }
};

/// A socket; the destructor closes it. Move-only.
///
///     net::socket s = net::socket::create_tcp(address.family());
///     if (int r = co_await s.connect(address); r < 0) ...
///     int n = co_await s.recv(buf);
///
/// Threading: one context at a time. One send and one recv may be in flight together. Cancellation:
/// as io_awaitable. No call raises SIGPIPE: a closed connection gives -EPIPE. The socket must
/// outlive the operations awaited on it.
class socket {
public:
    /// Without a descriptor and without an error.
    socket() noexcept = default;
    /// Takes ownership of a descriptor. A negative `fd` is the -errno of the call that failed to
    /// create one; error() returns it.
    explicit socket(int fd) noexcept : fd_(coil::detail::owned_by(fd, "net::socket")) {}
    socket(socket&& other) noexcept : fd_(std::exchange(other.fd_, detail::nothing)) {}
    socket& operator=(socket&& other) noexcept;
    ~socket();

    /// Create stream and datagram sockets, close-on-exec. They throw std::system_error (EMFILE,
    /// ...).
    static socket create_tcp(int family = AF_INET);
    static socket create_udp(int family = AF_INET);
    /// `type`: SOCK_STREAM, SOCK_DGRAM or SOCK_SEQPACKET.
    static socket create_unix(int type = SOCK_STREAM);
    /// Two Unix sockets that are connected to each other, close-on-exec: socketpair(2). Throws
    /// std::system_error.
    static std::pair<socket, socket> pair(int type = SOCK_STREAM);

    /// Whether it has a descriptor.
    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
    /// The error of a failed accept; otherwise no error.
    [[nodiscard]] std::error_code error() const noexcept {
        return fd_ >= 0 || fd_ == detail::nothing ? std::error_code()
                                                  : std::error_code(-fd_, std::generic_category());
    }

    [[nodiscard]] int native_handle() const noexcept { return fd_; }
    /// Releases ownership of the descriptor.
    [[nodiscard]] int release() noexcept {
        return coil::detail::given_up(std::exchange(fd_, detail::nothing));
    }

    /// connect(2): 0. Keeps its own copy of the address.
    auto connect(const endpoint& peer) noexcept {
        return io_awaitable<detail::connect_element>(detail::connect_element(fd_, peer));
    }
    /// recv(2): bytes received, 0 when the peer has shut down its side.
    operation recv(mutable_buffer buf COIL_LIFETIMEBOUND, int flags = 0) noexcept {
        return io::recv(fd_, buf, flags);
    }
    /// Produces a readable compiler error.
    template <coil::detail::bare_pointer Data, std::integral Size>
    operation recv(Data&& data, Size n, int flags = 0)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    /// Rejects a length passed as the flags: the length is part of the buffer.
    template <std::same_as<std::size_t> Flags>
    operation recv(mutable_buffer buf COIL_LIFETIMEBOUND, Flags flags) noexcept {
        return io::recv(fd_, buf, flags);
    }
    /// send(2): bytes sent, perhaps fewer than requested. In the middle of a `&&` chain coil adds
    /// MSG_WAITALL: the next operation starts when everything has been sent, and a send that
    /// remains short ends the chain.
    operation send(const_buffer buf COIL_LIFETIMEBOUND, int flags = 0) noexcept {
        return io::send(fd_, buf, flags);
    }
    /// Produces a readable compiler error.
    template <coil::detail::bare_pointer Data, std::integral Size>
    operation send(Data&& data, Size n, int flags = 0)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    /// Rejects a length passed as the flags: the length is part of the buffer.
    template <std::same_as<std::size_t> Flags>
    operation send(const_buffer buf COIL_LIFETIMEBOUND, Flags flags) noexcept {
        return io::send(fd_, buf, flags);
    }
    /// Receives until the buffer is full; gives the number of bytes, which is smaller only if the
    /// peer has shut down its side. On failure it gives the error even if some bytes were received.
    /// At most 0x7ffff000 bytes, as with read(2).
    task<io_result> recv_all(mutable_buffer buf COIL_LIFETIMEBOUND);
    /// Sends the whole buffer and gives its size. On failure it gives the error even if some bytes
    /// were sent. At most 0x7ffff000 bytes, as with write(2).
    task<io_result> send_all(const_buffer buf COIL_LIFETIMEBOUND);

    /// byte_stream: recv() and send() without flags.
    operation read_some(mutable_buffer buf COIL_LIFETIMEBOUND) noexcept { return recv(buf); }
    operation write_some(const_buffer buf COIL_LIFETIMEBOUND) noexcept { return send(buf); }

    /// sendto(2): bytes sent; a datagram is sent whole or not at all. The operation keeps its own
    /// copy of the address.
    auto send_to(const_buffer buf COIL_LIFETIMEBOUND, const endpoint& peer) noexcept {
        return io_awaitable<detail::send_to_endpoint_element>(
            detail::send_to_endpoint_element(fd_, buf, peer));
    }
    /// recvfrom(2): bytes received and the sender's address. A datagram longer than the buffer is
    /// truncated; with MSG_TRUNC in `flags` the result is its full length.
    auto recv_from(mutable_buffer buf COIL_LIFETIMEBOUND, int flags = 0) noexcept {
        return io_awaitable<detail::receive_from_endpoint_element>(
            detail::receive_from_endpoint_element(fd_, buf, flags));
    }
    /// sendto(2), recvfrom(2) with the arguments of the man page: see io::sendto, io::recvfrom.
    auto sendto(const_buffer buf COIL_LIFETIMEBOUND, int flags, const ::sockaddr* peer,
                ::socklen_t length) noexcept {
        return io::sendto(fd_, buf, flags, peer, length);
    }
    auto recvfrom(mutable_buffer buf COIL_LIFETIMEBOUND, int flags, ::sockaddr* peer,
                  ::socklen_t* length) noexcept {
        return io::recvfrom(fd_, buf, flags, peer, length);
    }

    /// Sends copies of descriptors to the peer of a Unix socket (SCM_RIGHTS), together with all of
    /// `data`, which must not be empty. Gives the size of `data`, or -errno; -EINVAL for more than
    /// max_descriptors. The caller's descriptors stay open. They and `data` must outlive the await.
    task<io_result> send_descriptors(std::span<const int> descriptors,
                                     const_buffer data COIL_LIFETIMEBOUND);
    /// recvmsg(2): bytes received and the descriptors sent with them. Descriptors of a discarded
    /// result are closed. When the peer has shut down its side: 0 bytes and no descriptors.
    auto recv_descriptors(mutable_buffer buf COIL_LIFETIMEBOUND) noexcept {
        return io_awaitable<detail::receive_descriptors_element>(
            detail::receive_descriptors_element(fd_, buf));
    }
    /// The credentials of the process that connected or listens at the other end of a Unix socket.
    /// Throws std::system_error.
    [[nodiscard]] credentials peer_credentials() const;

    /// shutdown(2): no more receiving / sending.
    operation shutdown_read() noexcept { return io::shutdown(fd_, SHUT_RD); }
    operation shutdown_write() noexcept { return io::shutdown(fd_, SHUT_WR); }
    /// close(2). Afterwards the socket has no descriptor.
    auto close() noexcept {
        return io_awaitable<detail::close_element>(detail::close_element(fd_));
    }

    /// bind(2), listen(2): 0 or -errno. They complete at once; awaiting the result is optional.
    immediate_result bind(const endpoint& local) noexcept;
    immediate_result listen(int backlog = SOMAXCONN) noexcept;

    // Options: socket(7), tcp(7), ipv6(7). 0 or -errno.
    io_result set_reuse_address(bool on) noexcept;
    io_result set_reuse_port(bool on) noexcept;
    io_result set_no_delay(bool on) noexcept;
    io_result set_keep_alive(bool on) noexcept;
    io_result set_v6_only(bool on) noexcept;
    io_result set_send_buffer_size(int bytes) noexcept;
    io_result set_receive_buffer_size(int bytes) noexcept;
    /// SO_LINGER; a negative time disables it, zero makes close() reset the connection.
    io_result set_linger(std::chrono::seconds time) noexcept;

    /// getsockname(2), getpeername(2). They throw std::system_error.
    [[nodiscard]] endpoint local_endpoint() const;
    [[nodiscard]] endpoint peer_endpoint() const;
    /// The same for internet sockets; other families throw address_family_not_supported.
    [[nodiscard]] inet_address local_address() const;
    [[nodiscard]] inet_address peer_address() const;

private:
    io_result set_option(int level, int name, int value) noexcept;

    int fd_ = detail::nothing;
};

} // namespace coil::net

namespace coil::detail {

/// The result of an accept() whose timeout has expired.
template <>
struct expired_result<net::socket> {
    static net::socket make(net::socket* accepted) noexcept {
        return accepted != nullptr && *accepted ? std::move(*accepted) : net::socket(-ETIMEDOUT);
    }
};

} // namespace coil::detail
