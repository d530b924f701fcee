#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/std_chrono.hpp>
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
#include <coil/net/immediate_result.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/message.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/vector_element.hpp>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil {
class io_context;
} // namespace coil

namespace coil::net {

/// A socket; the destructor closes it. Move-only.
///
///     net::socket s = net::socket::create_tcp(address.family());
///     if (int r = co_await s.connect(address); r < 0) ...
///     int n = co_await s.recv(buf);
///
/// Threading: one send and one recv may be in flight together, even on two contexts, as Linux
/// allows for a descriptor. The object itself is not thread-safe: it must not be closed, moved or
/// assigned to while another context uses it. Cancellation: as for io_awaitable. No call raises
/// SIGPIPE: sending on a closed connection returns -EPIPE. The socket must outlive the operations
/// awaited on it.
class socket {
public:
    /// Without a descriptor and without an error.
    socket() noexcept = default;
    /// Takes ownership of a descriptor. A negative `fd` is the -errno of the call that failed to
    /// create one; error() returns it.
    explicit socket(int fd) noexcept : fd_(coil::detail::owned_by(fd, "net::socket")) {}
    socket(socket&& other) noexcept : fd_(coil::detail::exchange(other.fd_, detail::nothing)) {}
    socket& operator=(socket&& other) noexcept;
    /// A socket is not copied.
    socket(const socket&) COIL_DELETE_COPY("a socket has one owner: write std::move(s)");
    socket& operator=(const socket&) COIL_DELETE_COPY("a socket has one owner: write std::move(s)");
    ~socket();
    /// Produce readable compiler errors.
    explicit socket(const io_context&) COIL_DELETE_COPY(
        "a socket takes no context: net::socket::create_tcp(), net::connect(host, port)");
    void operator co_await() const COIL_DELETE_COPY("receive from it: co_await s.recv(buf)");
    template <class First, class Second, class... Rest>
    socket(First&&, Second&&, Rest&&...)
        COIL_DELETE("a socket is connected by connect(): net::socket s = co_await "
                    "net::connect(\"127.0.0.1\", 80); or it is made by create_tcp()");

    /// Create TCP, UDP and Unix sockets, close-on-exec. They throw std::system_error (EMFILE, ...).
    static socket create_tcp(int family = AF_INET);
    static socket create_udp(int family = AF_INET);
    /// `type`: SOCK_STREAM, SOCK_DGRAM or SOCK_SEQPACKET.
    static socket create_unix(int type = SOCK_STREAM);
    /// Two Unix sockets that are connected to each other, close-on-exec: socketpair(2). Throws
    /// std::system_error.
    static std::pair<socket, socket> pair(int type = SOCK_STREAM);

    /// Whether it has a descriptor.
    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
    /// The error of the call that failed to create the socket, such as accept(); otherwise none.
    [[nodiscard]] std::error_code error() const noexcept {
        return fd_ >= 0 || fd_ == detail::nothing ? std::error_code()
                                                  : std::error_code(-fd_, std::generic_category());
    }

    [[nodiscard]] int native_handle() const noexcept { return fd_; }
    /// Releases ownership of the descriptor.
    [[nodiscard]] int release() noexcept {
        return coil::detail::given_up(coil::detail::exchange(fd_, detail::nothing));
    }

    /// connect(2): 0. Keeps its own copy of the address.
    auto connect(const endpoint& peer) noexcept {
        return io_awaitable<detail::connect_element>(detail::connect_element(fd_, peer));
    }
    /// Produces a readable compiler error.
    template <std::convertible_to<std::string_view> Text, std::integral Port>
    operation connect(Text&&, Port)
        COIL_DELETE("the address and the port are one argument: s.connect({\"127.0.0.1\", 80})");
    /// recv(2): bytes received, 0 when the peer has shut down its side.
    operation recv(mutable_buffer buf COIL_LIFETIMEBOUND, int flags = 0) noexcept COIL_WARN_IF(
        coil::detail::may_be_a_length(flags, coil::detail::recv_flags, buf.size()),
        "the argument after the buffer is the flags; the length is part of the buffer") {
        return io::recv(fd_, buf, flags);
    }
    /// Produces a readable compiler error.
    template <coil::detail::bare_pointer Data, std::integral Size>
    operation recv(Data&& data, Size n, int flags = 0)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    operation recv(mutable_buffer, const std::error_code&)
        COIL_DELETE("the result has the error: int n = co_await s.recv(buf), -errno if n < 0");
    template <coil::detail::plain_number Size>
    coil::detail::any_awaitable recv(Size)
        COIL_DELETE("pass a buffer, which recv fills: int n = co_await s.recv(buf)");
    /// Rejects a length passed as the flags: the length is part of the buffer.
    template <std::same_as<std::size_t> Flags>
    operation recv(mutable_buffer buf COIL_LIFETIMEBOUND, Flags flags) noexcept {
        return io::recv(fd_, buf, flags);
    }
    /// send(2): bytes sent, perhaps fewer than requested. In the middle of a `&&` chain coil adds
    /// MSG_WAITALL: the next operation starts when everything has been sent, and a send that
    /// remains short ends the chain.
    operation send(const_buffer buf COIL_LIFETIMEBOUND, int flags = 0) noexcept COIL_WARN_IF(
        coil::detail::may_be_a_length(flags, coil::detail::send_flags, buf.size()),
        "the argument after the buffer is the flags; the length is part of the buffer") {
        return io::send(fd_, buf, flags);
    }
    /// Produces a readable compiler error.
    template <coil::detail::bare_pointer Data, std::integral Size>
    operation send(Data&& data, Size n, int flags = 0)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    operation send(const_buffer, const std::error_code&)
        COIL_DELETE("the result has the error: int n = co_await s.send(buf), -errno if n < 0");
    /// Rejects a length passed as the flags: the length is part of the buffer.
    template <std::same_as<std::size_t> Flags>
    operation send(const_buffer buf COIL_LIFETIMEBOUND, Flags flags) noexcept {
        return io::send(fd_, buf, flags);
    }
    /// Receives until the buffer is full; returns the number of bytes, which is smaller only if the
    /// peer has shut down its side. On failure it returns the error even if some bytes were
    /// received. At most 0x7ffff000 bytes, as with read(2).
    task<io_result> recv_all(mutable_buffer buf COIL_LIFETIMEBOUND);
    /// Produces a readable compiler error.
    template <coil::detail::bare_pointer Data, std::integral Size>
    task<io_result> recv_all(Data&& data, Size n)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    template <std::integral Size>
    task<io_result> recv_all(mutable_buffer, Size)
        COIL_DELETE("the length is part of the buffer: {data, n}");
    /// Sends the whole buffer and returns its size. On failure it returns the error even if some
    /// bytes were sent. At most 0x7ffff000 bytes, as with write(2).
    task<io_result> send_all(const_buffer buf COIL_LIFETIMEBOUND);
    /// Produces a readable compiler error.
    template <coil::detail::bare_pointer Data, std::integral Size>
    task<io_result> send_all(Data&& data, Size n)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    template <std::integral Size>
    task<io_result> send_all(const_buffer, Size)
        COIL_DELETE("the length is part of the buffer: {data, n}");

    /// byte_stream: recv() and send() without flags.
    operation read_some(mutable_buffer buf COIL_LIFETIMEBOUND) noexcept { return recv(buf); }
    operation write_some(const_buffer buf COIL_LIFETIMEBOUND) noexcept { return send(buf); }
    /// vectored_source, vectored_sink: recvmsg(2), sendmsg(2) with up to 16 buffers. The operation
    /// keeps its own copy of the list, not of the memory.
    auto readv_some(std::span<const mutable_buffer> to) noexcept {
        return io_awaitable<coil::detail::socket_vector_element>(
            coil::detail::socket_vector_element(fd_, to));
    }
    auto writev_some(std::span<const const_buffer> from) noexcept {
        return io_awaitable<coil::detail::socket_vector_element>(
            coil::detail::socket_vector_element(fd_, from));
    }

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
    /// `data`, which must not be empty. Returns the size of `data`, or -errno; -EINVAL for more
    /// than max_descriptors. The caller's descriptors stay open. They and `data` must outlive the
    /// await.
    task<io_result> send_descriptors(std::span<const int> descriptors COIL_LIFETIMEBOUND,
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

    /// shutdown(2) of the receiving or the sending direction.
    operation shutdown_read() noexcept { return io::shutdown(fd_, SHUT_RD); }
    operation shutdown_write() noexcept { return io::shutdown(fd_, SHUT_WR); }
    /// close(2). Afterwards the socket has no descriptor, unless the result is -ECANCELED.
    auto close() noexcept {
        return io_awaitable<detail::close_element>(detail::close_element(fd_));
    }

    /// bind(2), listen(2): 0 or -errno. They complete immediately; awaiting the result is optional.
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
    /// SO_INCOMING_CPU: see acceptor_options::incoming_cpu.
    io_result set_incoming_cpu(int processor) noexcept;
    /// The processor on which the last packet of the connection arrived; nullopt if unknown.
    [[nodiscard]] std::optional<int> incoming_cpu() const noexcept;

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

namespace detail {

/// Produces a readable compiler error: `auto [n, peer] = s.recv_from(buf)` without co_await.
template <std::size_t I>
int get(const io_awaitable<receive_from_endpoint_element>&)
    COIL_DELETE("did you forget to co_await? Write auto [n, peer] = co_await s.recv_from(buf)");

} // namespace detail

} // namespace coil::net

template <>
struct std::tuple_size<coil::io_awaitable<coil::net::detail::receive_from_endpoint_element>>
    : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, coil::io_awaitable<coil::net::detail::receive_from_endpoint_element>> {
    using type = int;
};
namespace coil {

template <>
inline constexpr bool is_plain_socket<net::socket> = true;

} // namespace coil

namespace coil::detail {

/// The result of an accept() whose timeout has expired.
template <>
struct expired_result<net::socket> {
    static net::socket make(net::socket* accepted) noexcept {
        return accepted != nullptr && *accepted ? std::move(*accepted) : net::socket(-ETIMEDOUT);
    }
};

/// The result of a task that receives a message and whose timeout has expired: what it has received
/// is not lost.
template <class Received>
    requires std::same_as<Received, net::received_from> ||
             std::same_as<Received, net::received_descriptors>
struct expired_result<Received> {
    static Received make(Received* received) noexcept {
        return received != nullptr && received->result.has_value()
                   ? std::move(*received)
                   : failed_with<Received>(-ETIMEDOUT);
    }
};

} // namespace coil::detail
