// socket, bind, listen, accept, connect, send, recv, shutdown: effects and results.

#include "io/support.hpp"

#include <array>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace coil;
using coil_test::descriptor;
using coil_test::listener;
using coil_test::socket_pair;
using io_test::outcome;

namespace {

class Socket : public io_test::Calls {};

::sockaddr_in loopback(std::uint16_t port = 0) {
    ::sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(port);
    return a;
}
const ::sockaddr* generic(const ::sockaddr_in& a) {
    return reinterpret_cast<const ::sockaddr*>(&a);
}

descriptor tcp() { return descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}; }

TEST_F(Socket, SocketMakesADescriptor) {
    const descriptor fd{result_of(io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK))};
    ASSERT_GE(fd, 0);
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    int type = 0;
    ::socklen_t length = sizeof type;
    ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
    EXPECT_EQ(type, SOCK_DGRAM);
}

TEST_F(Socket, BindAndListen) {
    const descriptor fd = tcp();
    const auto any = loopback();
    EXPECT_EQ(result_of(io::bind(fd, generic(any), sizeof any)), 0);
    EXPECT_EQ(result_of(io::listen(fd, 5)), 0);
    int listening = 0;
    ::socklen_t length = sizeof listening;
    ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length);
    EXPECT_EQ(listening, 1);
}

TEST_F(Socket, AcceptReturnsTheConnectionAndItsAddress) {
    const listener l;
    const descriptor client = l.connect();
    ::sockaddr_in peer{};
    ::socklen_t length = sizeof peer;
    const descriptor fd{result_of(io::accept(l.socket, reinterpret_cast<::sockaddr*>(&peer),
                                             &length, SOCK_CLOEXEC | SOCK_NONBLOCK))};
    ASSERT_GE(fd, 0);
    EXPECT_EQ(length, sizeof peer);
    EXPECT_EQ(peer.sin_family, AF_INET);
    EXPECT_EQ(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(Socket, AcceptWaitsAndConnectConnects) {
    const listener l;
    const descriptor client = tcp();
    auto accepts = [](int fd) -> task<int> { co_return co_await io::accept(fd); };
    auto main = [](auto f, const listener& server, int fd) -> task<int> {
        auto handle = coil::spawn(f(server.socket));
        co_await yield();
        EXPECT_EQ(co_await io::connect(fd, generic(server.address), sizeof server.address), 0);
        co_return co_await handle;
    };
    const descriptor accepted{coil::run(main(accepts, l, client))};
    EXPECT_GE(accepted, 0);
}

TEST_F(Socket, SendAndRecv) {
    const socket_pair s;
    EXPECT_EQ(result_of(io::send(s.a, "hello")), 5);
    char buf[16];
    EXPECT_EQ(result_of(io::recv(s.b, buf, MSG_PEEK)), 5);
    EXPECT_EQ(result_of(io::recv(s.b, {buf, 2})), 2);
    EXPECT_EQ(result_of(io::recv(s.b, buf)), 3);
    EXPECT_EQ(std::string(buf, 3), "llo");
}

TEST_F(Socket, RecvWaitsForData) {
    const socket_pair s;
    auto receives = [](int fd) -> task<int> {
        char buf[16];
        co_return co_await io::recv(fd, buf);
    };
    auto main = [](auto f, const socket_pair& pair) -> task<int> {
        auto handle = coil::spawn(f(pair.a));
        co_await yield();
        EXPECT_EQ(co_await io::send(pair.b, "abc"), 3);
        co_return co_await handle;
    };
    EXPECT_EQ(coil::run(main(receives, s)), 3);
}

TEST_F(Socket, RecvWithWaitallFillsTheBuffer) {
    const socket_pair s;
    auto receives = [](int fd) -> task<int> {
        char buf[8];
        co_return co_await io::recv(fd, buf, MSG_WAITALL);
    };
    auto main = [](auto f, const socket_pair& pair) -> task<int> {
        auto handle = coil::spawn(f(pair.a));
        for (int i = 0; i < 4; ++i) {
            EXPECT_FALSE(handle.done());
            EXPECT_EQ(co_await io::send(pair.b, "ab"), 2);
        }
        co_return co_await handle;
    };
    EXPECT_EQ(coil::run(main(receives, s)), 8);
}

TEST_F(Socket, ShutdownIsTheEndForThePeer) {
    const socket_pair s;
    EXPECT_EQ(result_of(io::shutdown(s.a, SHUT_WR)), 0);
    char c;
    EXPECT_EQ(result_of(io::recv(s.b, {&c, 1})), 0);
}

TEST_F(Socket, SendToAClosedPeerRaisesNoSignal) {
    socket_pair s;
    s.b.reset();
    EXPECT_EQ(result_of(io::send(s.a, "x")), -EPIPE);
}

TEST_F(Socket, UnixSocketsWorkAlike) {
    const io_test::temporary_directory dir;
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = dir / "s";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto* const a = reinterpret_cast<const ::sockaddr*>(&address);
    const descriptor server{result_of(io::socket(AF_UNIX, SOCK_STREAM))};
    const descriptor client{result_of(io::socket(AF_UNIX, SOCK_STREAM))};
    EXPECT_EQ(result_of(io::bind(server, a, sizeof address)), 0);
    EXPECT_EQ(result_of(io::listen(server, 1)), 0);
    EXPECT_EQ(result_of(io::connect(client, a, sizeof address)), 0);
    const descriptor accepted{result_of(io::accept(server))};
    EXPECT_GE(accepted, 0);
}

// ---- the same errors as the system calls

TEST_F(Socket, ErrorsOfSocket) {
    constexpr int calls[][3] = {{999, SOCK_STREAM, 0},
                                {AF_INET, 999, 0},
                                {AF_INET, SOCK_STREAM, 999},
                                {AF_UNIX, SOCK_STREAM, 7}};
    for (const auto& [domain, type, protocol] : calls) {
        EXPECT_EQ(result_of(io::socket(domain, type, protocol)),
                  outcome(::socket(domain, type, protocol)))
            << domain << ' ' << type << ' ' << protocol;
    }
}

TEST_F(Socket, ErrorsOfBind) {
    const listener taken;
    const descriptor fd = tcp();
    const coil_test::pipe_pair p;
    auto foreign = loopback();
    foreign.sin_addr.s_addr = htonl(0xc0000201); // 192.0.2.1: not an address of this host
    auto same = [&](int s, const ::sockaddr* a, ::socklen_t n) {
        EXPECT_EQ(result_of(io::bind(s, a, n)), outcome(::bind(s, a, n)));
    };
    same(fd, generic(taken.address), sizeof taken.address);
    same(fd, generic(foreign), sizeof foreign);
    same(fd, generic(foreign), 3);
    same(-1, generic(foreign), sizeof foreign);
    same(p.in, generic(foreign), sizeof foreign);
    same(fd, nullptr, 16);
}

TEST_F(Socket, ErrorsOfListen) {
    const descriptor udp{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const coil_test::pipe_pair p;
    for (const int fd : {-1, static_cast<int>(udp), static_cast<int>(p.in)}) {
        EXPECT_EQ(result_of(io::listen(fd, 1)), outcome(::listen(fd, 1)));
    }
}

TEST_F(Socket, ErrorsOfAccept) {
    const descriptor not_listening = tcp();
    const descriptor udp{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const coil_test::pipe_pair p;
    for (const int fd :
         {-1, static_cast<int>(not_listening), static_cast<int>(udp), static_cast<int>(p.in)}) {
        EXPECT_EQ(result_of(io::accept(fd)), outcome(::accept4(fd, nullptr, nullptr, 0)));
    }
    const listener l;
    EXPECT_EQ(result_of(io::accept(l.socket, nullptr, nullptr, 0x1234)), -EINVAL);
}

TEST_F(Socket, ErrorsOfConnect) {
    descriptor closed_port = tcp();
    ::sockaddr_in closed_address = loopback();
    ::socklen_t length = sizeof closed_address;
    ASSERT_EQ(::bind(closed_port, generic(closed_address), sizeof closed_address), 0);
    ::getsockname(closed_port, reinterpret_cast<::sockaddr*>(&closed_address), &length);
    auto same = [&](auto make, const ::sockaddr* a, ::socklen_t n) {
        const descriptor first = make();
        const descriptor second = make();
        EXPECT_EQ(result_of(io::connect(first, a, n)), outcome(::connect(second, a, n)));
    };
    same(tcp, generic(closed_address), sizeof closed_address); // refused
    same(tcp, generic(closed_address), 3);
    same([] { return descriptor{}; }, generic(closed_address), sizeof closed_address);
    same([] { return descriptor{::open("/dev/null", O_RDWR | O_CLOEXEC)}; },
         generic(closed_address), sizeof closed_address);
    ::sockaddr_in other_family = closed_address;
    other_family.sin_family = 99;
    same(tcp, generic(other_family), sizeof other_family);
}

TEST_F(Socket, ErrorsOfSend) {
    const descriptor unconnected = tcp();
    const coil_test::pipe_pair p;
    for (const int fd : {-1, static_cast<int>(unconnected), static_cast<int>(p.out)}) {
        EXPECT_EQ(result_of(io::send(fd, "x")), outcome(::send(fd, "x", 1, MSG_NOSIGNAL)));
    }
    const socket_pair s;
    EXPECT_EQ(result_of(io::send(s.a, {reinterpret_cast<const void*>(8), 4})), -EFAULT);
}

TEST_F(Socket, ErrorsOfRecv) {
    const descriptor unconnected = tcp();
    const coil_test::pipe_pair p;
    char c;
    for (const int fd : {-1, static_cast<int>(unconnected), static_cast<int>(p.in)}) {
        EXPECT_EQ(result_of(io::recv(fd, {&c, 1})), outcome(::recv(fd, &c, 1, 0)));
    }
    const socket_pair s;
    EXPECT_EQ(result_of(io::recv(s.a, {&c, 1}, MSG_DONTWAIT)), -EAGAIN);
}

TEST_F(Socket, ErrorsOfShutdown) {
    const descriptor unconnected = tcp();
    const coil_test::pipe_pair p;
    for (const int fd : {-1, static_cast<int>(unconnected), static_cast<int>(p.in)}) {
        EXPECT_EQ(result_of(io::shutdown(fd, SHUT_WR)), outcome(::shutdown(fd, SHUT_WR)));
    }
    const socket_pair s;
    EXPECT_EQ(result_of(io::shutdown(s.a, 77)), outcome(::shutdown(s.a, 77)));
}

} // namespace
