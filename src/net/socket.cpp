#include <coil/context/perform.hpp>
#include <coil/net/socket.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>

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

/// The address of the socket, or of its peer.
inet_address address_of(int fd, bool peer, const char* what) {
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
        const socket closing(std::exchange(fd_, std::exchange(other.fd_, detail::nothing)));
    }
    return *this;
}

socket::~socket() {
    if (fd_ >= 0) {
        coil::detail::close_descriptor(fd_);
    }
}

socket socket::create_tcp(int family) { return create(family, SOCK_STREAM); }
socket socket::create_udp(int family) { return create(family, SOCK_DGRAM); }
socket socket::create_unix() { return create(AF_UNIX, SOCK_STREAM); }

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

immediate_result socket::bind(const inet_address& local) noexcept {
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
io_result socket::set_linger(std::chrono::seconds time) noexcept {
    const ::linger value{time.count() >= 0 ? 1 : 0,
                         time.count() >= 0 ? static_cast<int>(time.count()) : 0};
    return io_result(coil::detail::perform(
        uring::prep::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &value, sizeof value)));
}

inet_address socket::local_address() const { return address_of(fd_, false, "coil: local_address"); }

inet_address socket::peer_address() const { return address_of(fd_, true, "coil: peer_address"); }

} // namespace coil::net
