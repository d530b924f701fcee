#include <coil/context/detail/perform.hpp>
#include <coil/net/socket.hpp>
#include <coil/uring/perform.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstring>

#include <netinet/tcp.h>
#include <sys/socket.h>

namespace coil::net {

namespace {

socket create(int family, int type) {
    const int fd = coil::detail::perform(uring::prep::socket(family, type | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        throw std::system_error(-fd, std::generic_category(), "coil: socket");
    }
    return socket(fd);
}

/// The address of the socket or, if `peer`, of its peer.
endpoint address_of(int fd, bool peer, const char* what) {
    ::sockaddr_storage storage{};
    ::socklen_t length = sizeof storage;
    auto* const address = reinterpret_cast<::sockaddr*>(&storage);
    const int result = coil::detail::perform(uring::prep::getsockname(fd, address, &length, peer));
    if (result < 0) {
        throw std::system_error(-result, std::generic_category(), what);
    }
    return {address, length};
}

} // namespace

socket& socket::operator=(socket&& other) noexcept {
    if (this != &other) {
        const socket closing(std::move(*this));
        fd_ = std::exchange(other.fd_, detail::nothing);
    }
    return *this;
}

socket::~socket() {
    if (fd_ >= 0) {
        coil::detail::close_owned_descriptor(fd_, "net::socket");
    }
}

socket socket::create_tcp(int family) { return create(family, SOCK_STREAM); }
socket socket::create_udp(int family) { return create(family, SOCK_DGRAM); }
socket socket::create_unix(int type) { return create(AF_UNIX, type); }

std::pair<socket, socket> socket::pair(int type) {
    int fds[2];
    const int result =
        coil::detail::perform(uring::prep::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds));
    if (result < 0) {
        throw std::system_error(-result, std::generic_category(), "coil: socketpair");
    }
    return {socket(fds[0]), socket(fds[1])};
}

task<io_result> socket::send_descriptors(std::span<const int> descriptors, const_buffer data) {
    if (data.size() == 0 || descriptors.size() > max_descriptors) {
        co_return io_result(-EINVAL);
    }
    data = {data.data(), coil::detail::transfer_size(data.size())};
    alignas(::cmsghdr) std::byte control[CMSG_SPACE(max_descriptors * sizeof(int))] = {};
    ::iovec part{const_cast<void*>(data.data()), data.size()};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    const int sent = co_await io::sendmsg(fd_, &message);
    if (sent < 0 || static_cast<std::size_t>(sent) == data.size()) {
        co_return io_result(sent);
    }
    // The descriptors are attached to the first byte; the rest is plain data.
    const int rest = co_await send_all(data.drop(static_cast<std::size_t>(sent)));
    co_return io_result(rest < 0 ? rest : static_cast<int>(data.size()));
}

credentials socket::peer_credentials() const {
    ::ucred peer{};
    const int result = coil::detail::perform(
        uring::prep::getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, sizeof peer));
    if (result < 0) {
        throw std::system_error(-result, std::generic_category(), "coil: peer_credentials");
    }
    return {peer.pid, peer.uid, peer.gid};
}

task<io_result> socket::recv_all(mutable_buffer buf) {
    buf = {buf.data(), coil::detail::transfer_size(buf.size())};
    std::size_t received = 0;
    while (received < buf.size()) {
        const int n = co_await recv(buf.drop(received), MSG_WAITALL);
        if (n < 0) {
            co_return n;
        }
        if (n == 0) {
            break;
        }
        received += static_cast<std::size_t>(n);
    }
    co_return static_cast<int>(received);
}

task<io_result> socket::send_all(const_buffer buf) {
    buf = {buf.data(), coil::detail::transfer_size(buf.size())};
    std::size_t sent = 0;
    while (sent < buf.size()) {
        const int n = co_await send(buf.drop(sent), MSG_WAITALL);
        if (n < 0) {
            co_return n;
        }
        sent += static_cast<std::size_t>(n);
    }
    co_return static_cast<int>(sent);
}

immediate_result socket::bind(const endpoint& local) noexcept {
    return immediate_result(
        io_result(coil::detail::perform(uring::prep::bind(fd_, local.data(), local.size()))));
}

immediate_result socket::listen(int backlog) noexcept {
    return immediate_result(io_result(coil::detail::perform(uring::prep::listen(fd_, backlog))));
}

io_result socket::set_option(int level, int name, int value) noexcept {
    return io_result(
        coil::detail::perform(uring::prep::setsockopt(fd_, level, name, &value, sizeof value)));
}

io_result socket::set_reuse_address(bool on) noexcept {
    return set_option(SOL_SOCKET, SO_REUSEADDR, on ? 1 : 0);
}
io_result socket::set_reuse_port(bool on) noexcept {
    return set_option(SOL_SOCKET, SO_REUSEPORT, on ? 1 : 0);
}
io_result socket::set_no_delay(bool on) noexcept {
    return set_option(IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0);
}
io_result socket::set_keep_alive(bool on) noexcept {
    return set_option(SOL_SOCKET, SO_KEEPALIVE, on ? 1 : 0);
}
io_result socket::set_v6_only(bool on) noexcept {
    return set_option(IPPROTO_IPV6, IPV6_V6ONLY, on ? 1 : 0);
}
io_result socket::set_send_buffer_size(int bytes) noexcept {
    return set_option(SOL_SOCKET, SO_SNDBUF, bytes);
}
io_result socket::set_receive_buffer_size(int bytes) noexcept {
    return set_option(SOL_SOCKET, SO_RCVBUF, bytes);
}
io_result socket::set_incoming_cpu(int processor) noexcept {
    return set_option(SOL_SOCKET, SO_INCOMING_CPU, processor);
}
std::optional<int> socket::incoming_cpu() const noexcept {
    int processor = -1;
    const int result = coil::detail::perform(
        uring::prep::getsockopt(fd_, SOL_SOCKET, SO_INCOMING_CPU, &processor, sizeof processor));
    return result >= 0 && processor >= 0 ? std::optional(processor) : std::nullopt;
}
io_result socket::set_linger(std::chrono::seconds time) noexcept {
    const ::linger value{time.count() >= 0 ? 1 : 0,
                         time.count() >= 0 ? static_cast<int>(time.count()) : 0};
    return io_result(coil::detail::perform(
        uring::prep::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &value, sizeof value)));
}

endpoint socket::local_endpoint() const {
    return address_of(fd_, false, "coil: local address of a socket");
}
endpoint socket::peer_endpoint() const {
    return address_of(fd_, true, "coil: peer address of a socket");
}

inet_address socket::local_address() const { return local_endpoint().as_inet(); }
inet_address socket::peer_address() const { return peer_endpoint().as_inet(); }

} // namespace coil::net
