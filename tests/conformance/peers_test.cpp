// The names of sockets and of their peers, and connections that have ended.

#include "conformance/support.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

namespace conformance {

namespace {

class Peers : public Conformance {};
COIL_ON_ALL_BACKENDS(Peers);

int peer_name(int fd) {
    address a;
    return coil::detail::perform(coil::uring::prep::getsockname(fd, a.get(), &a.length, true));
}

task<> disconnect(int fd) {
    const ::sockaddr none{AF_UNSPEC, {}};
    co_await gives(io::connect(fd, &none, sizeof none), 0);
    EXPECT_EQ(peer_name(fd), -ENOTCONN);
}

/// A disconnected UDP socket keeps of its name what was given to bind(2): udp(7).
task<> disconnected() {
    const int receiver = co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
    const address any;
    co_await gives(io::bind(receiver, any.get(), any.length), 0);
    const address to = name_of(receiver);

    int fd = co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
    co_await gives(io::connect(fd, to.get(), to.length), 0);
    EXPECT_NE(name_of(fd).port(), 0);
    co_await disconnect(fd);
    EXPECT_EQ(name_of(fd).port(), 0);
    EXPECT_EQ(name_of(fd).in.sin_addr.s_addr, htonl(INADDR_ANY));
    co_await gives(io::send(fd, "x"), -EDESTADDRREQ);
    const std::uint16_t port = name_of(fd).port();
    EXPECT_NE(port, 0) << "bound again, though nothing was sent";
    co_await gives(io::close(fd), 0);

    // By an address alone, and by both.
    for (const std::uint16_t number : {std::uint16_t{0}, port}) {
        fd = co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
        const address own(number);
        co_await gives(io::bind(fd, own.get(), own.length), 0);
        co_await gives(io::connect(fd, to.get(), to.length), 0);
        co_await disconnect(fd);
        EXPECT_EQ(name_of(fd).port(), number);
        EXPECT_EQ(name_of(fd).in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        co_await gives(io::bind(fd, own.get(), own.length), number == 0 ? 0 : -EINVAL);
        co_await gives(io::close(fd), 0);
    }
    co_await gives(io::close(receiver), 0);
}
TEST_P(Peers, OfADisconnectedSocket) { run(disconnected()); }

task<> ended_connection() {
    const ends s = co_await connected();
    char buf[8];
    co_await gives(io::shutdown(s.a, SHUT_WR), 0);
    co_await gives(io::recv(s.b, buf), 0);
    EXPECT_EQ(peer_name(s.a), 0) << "only one end is shut down";
    co_await gives(io::shutdown(s.b, SHUT_WR), 0);
    co_await gives(io::recv(s.a, buf), 0);
    EXPECT_EQ(peer_name(s.a), -ENOTCONN);
    co_await closed(s);
}
TEST_P(Peers, OfAConnectionThatHasEnded) { run(ended_connection()); }

/// A reset after the end of the stream is reported by send(2), not by recv(2).
task<> late_reset() {
    const ends s = co_await connected();
    char buf[8];
    co_await gives(io::close(s.a), 0);
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::send(s.b, "x"), 1);
    co_await coil::sleep_for(1ms); // until the reset has arrived
    co_await gives(io::poll(s.b, POLLERR), POLLERR | POLLHUP | POLLRDHUP);
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::send(s.b, "x"), -EPIPE);
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::close(s.b), 0);
}
TEST_P(Peers, ALateResetIsNoErrorOfAReceive) { run(late_reset()); }

task<> closed_peer() {
    const ends s = paired(SOCK_STREAM);
    co_await gives(io::shutdown(s.a, SHUT_WR), 0);
    co_await gives(io::poll(s.b, POLLIN | POLLOUT), POLLIN | POLLOUT | POLLRDHUP);
    co_await gives(io::close(s.a), 0);
    co_await gives(io::poll(s.b, POLLIN | POLLOUT), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
    co_await gives(io::close(s.b), 0);
}
TEST_P(Peers, HaveGone) { run(closed_peer()); }

/// Sockets of different types may have the same abstract name; a path names one socket.
task<> names_of_types(std::string directory) {
    for (const bool is_abstract : {true, false}) {
        ::sockaddr_un at{};
        at.sun_family = AF_UNIX;
        const std::string name =
            is_abstract ? '\0' + ("coil-peers-" + std::to_string(::getpid())) : directory + "s";
        std::memcpy(at.sun_path, name.data(), name.size());
        const auto length = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) +
                                                     name.size() + (is_abstract ? 0 : 1));
        const auto* const to = reinterpret_cast<const ::sockaddr*>(&at);
        const int datagrams = co_await io::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC);
        const int stream = co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
        co_await gives(io::bind(datagrams, to, length), 0);
        co_await gives(io::connect(stream, to, length), is_abstract ? -ECONNREFUSED : -EPROTOTYPE);
        co_await closed({datagrams, stream});
    }
}
TEST_P(Peers, OfAnotherType) { run(names_of_types(directory())); }

} // namespace

} // namespace conformance
