// Sockets on every backend: connections, transfers, end of file, options, datagrams.

#include "conformance/support.hpp"

#include <array>

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/uio.h>

namespace conformance {

namespace {

class Sockets : public Conformance {};
COIL_ON_ALL_BACKENDS(Sockets);

task<> streams() {
    const ends s = co_await connected();
    char buf[64] = {};
    co_await gives(io::send(s.a, "hello"), 5);
    co_await gives(io::recv(s.b, {buf, 5}, MSG_WAITALL), 5);
    EXPECT_EQ(text(buf, 5), "hello");
    co_await gives(io::write(s.b, "by write"), 8);
    co_await gives(io::recv(s.a, {buf, 8}, MSG_WAITALL | MSG_PEEK), 8);
    co_await gives(io::read(s.a, {buf, 3}), 3, "as much as fits");
    co_await gives(io::recv(s.a, {buf, 5}, MSG_WAITALL), 5);
    EXPECT_EQ(text(buf, 5), "write");
    co_await gives(io::recv(s.a, buf, MSG_DONTWAIT), -EAGAIN);
    co_await gives(coil::timeout(io::recv(s.a, buf), 2ms), -ETIMEDOUT);
    co_await closed(s);
}
TEST_P(Sockets, Streams) { run(streams()); }

task<> stream_ends() {
    const ends s = co_await connected();
    char buf[64] = {};
    co_await gives(io::send(s.a, "last"), 4);
    co_await gives(io::shutdown(s.a, SHUT_WR), 0);
    co_await gives(io::send(s.a, "x", MSG_NOSIGNAL), -EPIPE);
    co_await gives(io::recv(s.b, buf, MSG_WAITALL), 4,
                   "the stream ended before the buffer was full");
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::recv(s.b, buf), 0, "again");
    co_await gives(io::send(s.b, "back"), 4, "the other half is open");
    co_await gives(io::recv(s.a, {buf, 4}, MSG_WAITALL), 4);
    co_await gives(io::shutdown(s.b, 77), -EINVAL);
    co_await closed(s);
}
TEST_P(Sockets, StreamsEnd) { run(stream_ends()); }

task<> pending_receive() {
    const ends s = co_await connected();
    char buf[64] = {};
    auto waiting = coil::eager(io::recv(s.b, buf));
    co_await coil::yield();
    co_await gives(io::send(s.a, "wakes"), 5);
    const int n = co_await waiting;
    EXPECT_EQ(text(buf, n), "wakes");
    auto at_end = coil::eager(io::recv(s.b, buf));
    co_await gives(io::close(s.a), 0);
    const int end = co_await at_end;
    EXPECT_EQ(end, 0);
    co_await gives(io::close(s.b), 0);
}
TEST_P(Sockets, AWaiterIsWoken) { run(pending_receive()); }

task<> big_transfer() {
    const ends s = co_await connected();
    constexpr std::size_t size = 1U << 20;
    const std::string data(size, 'x');
    std::string got(size, '\0');
    auto sends = coil::eager(io::send(s.a, data, MSG_WAITALL));
    const int n = co_await io::recv(s.b, got, MSG_WAITALL);
    EXPECT_EQ(n, static_cast<int>(size));
    const int sent = co_await sends;
    EXPECT_EQ(sent, static_cast<int>(size));
    EXPECT_TRUE(got == data);
    co_await closed(s);
}
TEST_P(Sockets, MoreThanBuffersHold) { run(big_transfer()); }

task<> refusals() {
    const int listener = co_await listening();
    const address at = name_of(listener);
    const int second = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::bind(second, at.get(), at.length), -EADDRINUSE);
    char buf[4];
    co_await gives(io::recv(second, buf), -ENOTCONN);
    co_await gives(io::send(second, "x", MSG_NOSIGNAL), -EPIPE);
    co_await gives(io::shutdown(second, SHUT_WR), -ENOTCONN);
    co_await gives(io::accept(second), -EINVAL, "it does not listen");
    co_await gives(io::accept(listener, nullptr, nullptr, 1), -EINVAL);
    co_await gives(io::close(listener), 0);
    co_await gives(io::connect(second, at.get(), at.length), -ECONNREFUSED);
    co_await gives(io::close(second), 0);
    co_await gives(io::socket(12345, SOCK_STREAM), -EAFNOSUPPORT);
    co_await gives(io::recv(-1, buf), -EBADF);
    const ends pipe = co_await piped();
    co_await gives(io::recv(pipe.a, buf), -ENOTSOCK);
    co_await gives(io::accept(pipe.a), -ENOTSOCK);
    co_await gives(io::connect(pipe.a, at.get(), at.length), -ENOTSOCK);
    co_await closed(pipe);
}
TEST_P(Sockets, Refusals) { run(refusals()); }

task<> connections() {
    const int listener = co_await listening();
    const address at = name_of(listener);
    co_await gives(coil::timeout(io::accept(listener), 2ms), -ETIMEDOUT);
    address peer;
    auto accepting =
        coil::eager(io::accept(listener, peer.get(), &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int client = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(client, at.get(), at.length), 0);
    co_await gives(io::connect(client, at.get(), at.length), -EISCONN);
    const int server = co_await accepting;
    EXPECT_GE(server, 0);
    EXPECT_EQ(peer.length, sizeof peer.in);
    EXPECT_EQ(peer.port(), name_of(client).port());
    char buf[4];
    co_await gives(coil::timeout(io::recv(server, buf), 2ms), -ETIMEDOUT,
                   "a ring waits despite O_NONBLOCK");
    for (const int fd : {listener, client, server}) {
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(Sockets, Connections) { run(connections()); }

task<> options() {
    const int fd = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    int value = 1;
    ::socklen_t length = sizeof value;
    co_await gives(io::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, length), 0);
    value = 0;
    co_await gives(io::getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, &length), 0);
    EXPECT_NE(value, 0);
    EXPECT_EQ(length, sizeof value);
    co_await gives(io::getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length), 0);
    EXPECT_EQ(value, SOCK_STREAM);
    co_await gives(io::getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length), 0);
    EXPECT_EQ(value, 0);
    value = 1;
    co_await gives(io::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, length), 0);
    co_await gives(io::close(fd), 0);
}
TEST_P(Sockets, Options) { run(options()); }

task<int> datagram_socket() {
    const int fd = co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
    const address any;
    co_await gives(io::bind(fd, any.get(), any.length), 0);
    co_return fd;
}

task<> datagrams() {
    const ends s{co_await datagram_socket(), co_await datagram_socket()};
    const address to_b = name_of(s.b);
    char buf[16] = {};
    // One at a time: the order is unspecified.
    co_await gives(io::sendto(s.a, "one", 0, to_b.get(), to_b.length), 3);
    address from;
    co_await gives(io::recvfrom(s.b, buf, 0, from.get(), &from.length), 3);
    EXPECT_EQ(from.port(), name_of(s.a).port());
    co_await gives(io::sendto(s.a, "", 0, to_b.get(), to_b.length), 0);
    co_await gives(io::recv(s.b, buf), 0, "an empty one");
    co_await gives(io::sendto(s.a, "longer", 0, to_b.get(), to_b.length), 6);
    std::array<char, 2> small{};
    ::iovec part{small.data(), small.size()};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    co_await gives(io::recvmsg(s.b, &message), 2);
    EXPECT_EQ(message.msg_flags & MSG_TRUNC, MSG_TRUNC);
    co_await gives(io::recv(s.b, buf, MSG_DONTWAIT), -EAGAIN, "the rest is lost");
    co_await gives(io::send(s.a, "x"), -EDESTADDRREQ);
    co_await gives(io::connect(s.a, to_b.get(), to_b.length), 0);
    co_await gives(io::send(s.a, "x"), 1);
    co_await gives(io::recv(s.b, buf), 1);
    co_await closed(s);
}
TEST_P(Sockets, Datagrams) { run(datagrams()); }

task<> messages() {
    const ends s = co_await connected();
    char a[] = "ab";
    char b[] = "cdef";
    ::iovec parts[] = {{a, 2}, {b, 4}};
    ::msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    co_await gives(io::sendmsg(s.a, &message), 6);
    char c[3] = {};
    char d[3] = {};
    ::iovec into[] = {{c, 3}, {d, 3}};
    ::msghdr received{};
    received.msg_iov = into;
    received.msg_iovlen = 2;
    co_await gives(io::recvmsg(s.b, &received, MSG_WAITALL), 6);
    EXPECT_EQ(text(c, 3), "abc");
    EXPECT_EQ(text(d, 3), "def");
    co_await closed(s);
}
TEST_P(Sockets, Messages) { run(messages()); }

task<> zero_copy() {
    const ends s = co_await connected();
    const std::string data(20'000, 'z');
    std::string got(data.size(), '\0');
    auto sends = coil::eager(io::send_zc(s.a, data, MSG_WAITALL));
    const int n = co_await io::recv(s.b, got, MSG_WAITALL);
    EXPECT_EQ(n, 20'000);
    const int sent = co_await sends;
    EXPECT_EQ(sent, 20'000);
    EXPECT_EQ(got, data);
    co_await closed(s);
}
TEST_P(Sockets, ZeroCopy) { run(zero_copy()); }

task<> polls() {
    const ends s = co_await connected();
    co_await gives(io::poll(s.a, POLLOUT), POLLOUT);
    co_await gives(coil::timeout(io::poll(s.b, POLLIN), 2ms), -ETIMEDOUT);
    auto waiting = coil::eager(io::poll(s.b, POLLIN));
    co_await gives(io::send(s.a, "x"), 1);
    const int ready = co_await waiting;
    EXPECT_EQ(ready, POLLIN);
    co_await gives(io::poll(s.b, POLLIN | POLLOUT), POLLIN | POLLOUT);
    co_await gives(io::poll(-1, POLLIN), -EBADF);
    co_await closed(s);
}
TEST_P(Sockets, Poll) { run(polls()); }

} // namespace

} // namespace conformance
