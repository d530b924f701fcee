// IPv6 sockets that also serve IPv4: ipv6(7), IPV6_V6ONLY.

#include "conformance/support.hpp"

#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

namespace conformance {

namespace {

/// Skips the tests where the machine has no IPv6.
class IpVersions : public Conformance {
protected:
    void SetUp() override {
        const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_in6 self{};
        self.sin6_family = AF_INET6;
        self.sin6_addr = in6addr_loopback;
        const bool has_ipv6 =
            fd >= 0 && ::bind(fd, reinterpret_cast<::sockaddr*>(&self), sizeof self) == 0;
        if (fd >= 0) {
            ::close(fd);
        }
        if (!has_ipv6) {
            GTEST_SKIP() << "no IPv6";
        }
        Conformance::SetUp();
    }
};
COIL_ON_ALL_BACKENDS(IpVersions);

struct address6 {
    ::sockaddr_in6 in{};
    ::socklen_t length = sizeof in;

    explicit address6(const ::in6_addr& host = in6addr_any, std::uint16_t port = 0) {
        in.sin6_family = AF_INET6;
        in.sin6_addr = host;
        in.sin6_port = htons(port);
    }
    ::sockaddr* get() { return reinterpret_cast<::sockaddr*>(&in); }
    [[nodiscard]] std::uint16_t port() const { return ntohs(in.sin6_port); }
    [[nodiscard]] bool is_mapped_loopback() const {
        const std::uint8_t* const ip = in.sin6_addr.s6_addr;
        return in.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) && ip[12] == 127 &&
               ip[15] == 1;
    }
};

/// ::ffff:127.0.0.1
address6 mapped_loopback(std::uint16_t port) {
    address6 a(in6addr_any, port);
    a.in.sin6_addr.s6_addr[10] = a.in.sin6_addr.s6_addr[11] = 0xff;
    a.in.sin6_addr.s6_addr[12] = 127;
    a.in.sin6_addr.s6_addr[15] = 1;
    return a;
}

address6 name6_of(int fd, bool peer = false) {
    address6 a;
    const int r =
        coil::detail::perform(coil::uring::prep::getsockname(fd, a.get(), &a.length, peer));
    EXPECT_EQ(r, 0);
    return a;
}

task<int> listening6(bool only_ipv6) {
    const int fd = co_await io::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC);
    const int only = only_ipv6 ? 1 : 0;
    co_await gives(io::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only), 0);
    address6 any;
    co_await gives(io::bind(fd, any.get(), any.length), 0);
    co_await gives(io::listen(fd, 4), 0);
    co_return fd;
}

task<> clients_of_both() {
    const int listener = co_await listening6(false);
    const address at(name6_of(listener).port());
    const int client = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(client, at.get(), at.length), 0);
    address6 peer;
    const int served = co_await io::accept(listener, peer.get(), &peer.length, SOCK_CLOEXEC);
    EXPECT_GE(served, 0);
    EXPECT_TRUE(peer.is_mapped_loopback());
    EXPECT_EQ(peer.port(), name_of(client).port());
    EXPECT_TRUE(name6_of(served).is_mapped_loopback());
    EXPECT_TRUE(name6_of(served, true).is_mapped_loopback());
    char buf[4];
    co_await gives(io::send(client, "abc"), 3);
    co_await gives(io::recv(served, buf), 3);
    const int client6 = co_await io::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC);
    address6 at6(in6addr_loopback, at.port());
    co_await gives(io::connect(client6, at6.get(), at6.length), 0);
    for (const int fd : {client, client6, served, listener}) {
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(IpVersions, AListenerServesBoth) { run(clients_of_both()); }

task<> only_ipv6() {
    const int listener = co_await listening6(true);
    const address at(name6_of(listener).port());
    const int client = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(client, at.get(), at.length), -ECONNREFUSED);
    co_await gives(io::close(client), 0);
    co_await gives(io::close(listener), 0);
}
TEST_P(IpVersions, AListenerForIpv6Only) { run(only_ipv6()); }

task<> conflicts() {
    const int v4 = co_await listening();
    const std::uint16_t port = name_of(v4).port();
    for (const int only : {0, 1}) {
        const int v6 = co_await io::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC);
        co_await gives(io::setsockopt(v6, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only), 0);
        address6 any(in6addr_any, port);
        co_await gives(io::bind(v6, any.get(), any.length), only != 0 ? 0 : -EADDRINUSE);
        co_await gives(io::close(v6), 0);
    }
    const int v6 = co_await io::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC);
    address6 self(in6addr_loopback, port);
    co_await gives(io::bind(v6, self.get(), self.length), 0, "another address");
    co_await gives(io::close(v6), 0);
    co_await gives(io::close(v4), 0);
}
TEST_P(IpVersions, Conflicts) { run(conflicts()); }

task<> mapped_server() {
    const int listener = co_await listening();
    address6 at = mapped_loopback(name_of(listener).port());
    const int client = co_await io::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(client, at.get(), at.length), 0);
    address peer;
    const int served = co_await io::accept(listener, peer.get(), &peer.length, SOCK_CLOEXEC);
    EXPECT_GE(served, 0);
    EXPECT_EQ(peer.in.sin_family, AF_INET);
    EXPECT_EQ(ntohl(peer.in.sin_addr.s_addr), INADDR_LOOPBACK);
    EXPECT_TRUE(name6_of(client).is_mapped_loopback());
    for (const int fd : {client, served, listener}) {
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(IpVersions, AClientOfAMappedAddress) { run(mapped_server()); }

task<> datagrams_of_both() {
    const int server = co_await io::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC);
    address6 any;
    co_await gives(io::bind(server, any.get(), any.length), 0);
    const address at(name6_of(server).port());
    const int client = co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
    co_await gives(io::sendto(client, "ask", 0, at.get(), at.length), 3);
    char buf[8];
    address6 peer;
    co_await gives(io::recvfrom(server, buf, 0, peer.get(), &peer.length), 3);
    EXPECT_TRUE(peer.is_mapped_loopback());
    EXPECT_EQ(peer.port(), name_of(client).port());
    co_await gives(io::sendto(server, "reply", 0, peer.get(), peer.length), 5);
    address from;
    co_await gives(io::recvfrom(client, buf, 0, from.get(), &from.length), 5);
    EXPECT_EQ(from.in.sin_family, AF_INET);
    EXPECT_EQ(from.port(), at.port());
    co_await gives(io::connect(server, peer.get(), peer.length), 0);
    co_await gives(io::send(server, "more"), 4);
    co_await gives(io::recv(client, buf), 4);
    co_await gives(io::sendto(client, "last", 0, at.get(), at.length), 4);
    co_await gives(io::recv(server, buf), 4, "from the peer");
    co_await gives(io::close(client), 0);
    co_await gives(io::close(server), 0);
}
TEST_P(IpVersions, Datagrams) { run(datagrams_of_both()); }

} // namespace

} // namespace conformance
