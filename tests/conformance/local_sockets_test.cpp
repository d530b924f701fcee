// AF_UNIX sockets, and multishot recvmsg, on every backend.

#include "conformance/support.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <poll.h>
#include <sys/uio.h>
#include <sys/un.h>

namespace conformance {

namespace {

class LocalSockets : public Conformance {};
COIL_ON_ALL_BACKENDS(LocalSockets);

struct path_address {
    ::sockaddr_un un{};
    explicit path_address(const std::string& path) {
        un.sun_family = AF_UNIX;
        std::memcpy(un.sun_path, path.c_str(), path.size() + 1);
    }
    [[nodiscard]] const ::sockaddr* get() const { return reinterpret_cast<const ::sockaddr*>(&un); }
    static constexpr ::socklen_t length = sizeof(::sockaddr_un);
};

task<int> local_listener(const path_address& at, int backlog = 4) {
    const int fd = co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::bind(fd, at.get(), at.length), 0);
    co_await gives(io::listen(fd, backlog), 0);
    co_return fd;
}

task<ends> local_connection(std::string directory) {
    const path_address at(directory + "s");
    const int listener = co_await local_listener(at);
    ends made;
    made.a = co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(made.a, at.get(), at.length), 0);
    made.b = co_await io::accept(listener, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(made.b, 0);
    co_await gives(io::close(listener), 0);
    co_return made;
}

task<> local_streams(std::string directory) {
    const ends s = co_await local_connection(directory);
    char buf[16] = {};
    co_await gives(io::send(s.a, "hello"), 5);
    co_await gives(io::recv(s.b, {buf, 2}), 2);
    co_await gives(io::recv(s.b, buf), 3, "as much as there is");
    auto waiting = coil::eager(io::recv(s.a, buf));
    co_await gives(io::write(s.b, "wakes"), 5);
    const int n = co_await waiting;
    EXPECT_EQ(text(buf, n), "wakes");
    co_await gives(io::close(s.a), 0);
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::send(s.b, "x"), -EPIPE);
    co_await gives(io::close(s.b), 0);
}
TEST_P(LocalSockets, Streams) { run(local_streams(directory())); }

task<> local_refusals(std::string directory) {
    const path_address absent(directory + "absent");
    const path_address at(directory + "s");
    const int fd = co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(fd, absent.get(), absent.length), -ENOENT);
    const int listener = co_await local_listener(at);
    const int second = co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::bind(second, at.get(), at.length), -EADDRINUSE);
    co_await gives(io::close(listener), 0);
    co_await gives(io::connect(fd, at.get(), at.length), -ECONNREFUSED, "the name is still there");
    co_await closed({fd, second});
}
TEST_P(LocalSockets, Refusals) { run(local_refusals(directory())); }

/// A connect to a full queue waits for space, and fails when the listener shuts down.
task<> full_queue(std::string directory) {
    const path_address at(directory + "s");
    const int listener = co_await local_listener(at, 0);
    const ends c{co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC),
                 co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)};
    co_await gives(io::connect(c.a, at.get(), at.length), 0);
    co_await gives(coil::timeout(io::connect(c.b, at.get(), at.length), 10ms), -ETIMEDOUT);
    auto waiting = coil::eager(io::connect(c.b, at.get(), at.length));
    co_await coil::sleep_for(1ms);
    const int accepted = co_await io::accept(listener, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(accepted, 0);
    const int result = co_await waiting;
    EXPECT_EQ(result, 0);
    co_await gives(io::close(accepted), 0);
    co_await gives(io::close(listener), 0);
    co_await closed(c);
}
TEST_P(LocalSockets, AConnectWaitsForSpace) { run(full_queue(directory())); }

/// A listener that was shut down keeps the connections that it has not accepted.
task<> shut_local_listener(std::string directory) {
    const path_address at(directory + "s");
    const int listener = co_await local_listener(at);
    const ends c{co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC),
                 co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)};
    co_await gives(io::connect(c.a, at.get(), at.length), 0);
    co_await gives(io::send(c.a, "hi"), 2);
    co_await gives(io::shutdown(listener, SHUT_RD), 0);
    co_await gives(io::poll(listener, POLLIN), POLLIN | POLLRDHUP);
    co_await gives(io::connect(c.b, at.get(), at.length), -ECONNREFUSED);
    const int accepted = co_await io::accept(listener, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(accepted, 0);
    char buf[4];
    co_await gives(io::recv(accepted, buf), 2);
    co_await gives(coil::timeout(io::accept(listener), 1s), -EINVAL, "there will be no more");
    co_await gives(io::close(accepted), 0);
    co_await gives(io::close(listener), 0);
    co_await closed(c);
}
TEST_P(LocalSockets, AListenerThatWasShutDown) { run(shut_local_listener(directory())); }

task<int> local_datagrams(const path_address& at) {
    const int fd = co_await io::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC);
    co_await gives(io::bind(fd, at.get(), at.length), 0);
    co_return fd;
}

task<> local_datagram_pair(std::string directory) {
    const path_address at_a(directory + "a");
    const path_address at_b(directory + "b");
    const ends s{co_await local_datagrams(at_a), co_await local_datagrams(at_b)};
    char buf[16] = {};
    co_await gives(io::sendto(s.a, "one", 0, at_b.get(), at_b.length), 3);
    co_await gives(io::sendto(s.a, "three", 0, at_b.get(), at_b.length), 5);
    path_address from("");
    ::socklen_t length = sizeof from.un;
    co_await gives(io::recvfrom(s.b, buf, 0, reinterpret_cast<::sockaddr*>(&from.un), &length), 3);
    EXPECT_EQ(std::string_view(from.un.sun_path), std::string_view(at_a.un.sun_path));
    co_await gives(io::recv(s.b, {buf, 2}), 2, "the rest is lost");
    co_await gives(io::recv(s.b, buf, MSG_DONTWAIT), -EAGAIN);
    co_await gives(io::send(s.a, "x"), -ENOTCONN);
    co_await closed(s);
}
TEST_P(LocalSockets, Datagrams) { run(local_datagram_pair(directory())); }

/// A receive is never continued with the next datagram. A datagram that does not fit breaks a chain
/// that wants all bytes.
task<> datagrams_and_all_bytes(std::string directory) {
    const path_address at(directory + "b");
    const ends s{co_await local_datagrams(path_address(directory + "a")),
                 co_await local_datagrams(at)};
    char buf[4] = {};
    for (const std::string_view text : {"abcd", "efghijkl", "mn", "opqrst"}) {
        co_await gives(io::sendto(s.a, text, 0, at.get(), at.length),
                       static_cast<int>(text.size()));
    }
    co_await gives(io::recv(s.b, buf, MSG_WAITALL) && io::nop(), 0);
    co_await gives(io::recv(s.b, buf, MSG_WAITALL) && io::nop(), -ECANCELED);
    co_await gives(io::recv(s.b, buf, MSG_WAITALL), 2);
    co_await gives(io::recv(s.b, buf) && io::nop(), 0, "without the flag a chain goes on");
    co_await closed(s);
}
TEST_P(LocalSockets, DatagramsAndAllBytes) { run(datagrams_and_all_bytes(directory())); }

task<> full_peer(std::string directory) {
    const path_address at(directory + "b");
    const ends s{co_await io::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC),
                 co_await local_datagrams(at)};
    co_await gives(io::connect(s.a, at.get(), at.length), 0);
    int sent = 0;
    for (; sent < 10'000; ++sent) {
        const int n = co_await io::send(s.a, "x", MSG_DONTWAIT);
        if (n != 1) {
            EXPECT_EQ(n, -EAGAIN);
            break;
        }
    }
    co_await gives(coil::timeout(io::send(s.a, "y"), 2ms), -ETIMEDOUT, "the queue is full");
    auto waiting = coil::eager(io::send(s.a, "z"));
    char last = 0;
    for (int i = 0; i < sent; ++i) {
        co_await gives(io::recv(s.b, {&last, 1}), 1);
        EXPECT_EQ(last, 'x');
    }
    const int n = co_await waiting;
    EXPECT_EQ(n, 1);
    co_await gives(io::recv(s.b, {&last, 1}), 1);
    EXPECT_EQ(last, 'z'); // what was cancelled was not sent
    co_await closed(s);
}
TEST_P(LocalSockets, G3_ADatagramWaitsForRoom) { run(full_peer(directory())); }

/// Control data with one descriptor.
struct carrier {
    alignas(::cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    ::iovec part{};
    ::msghdr message{};

    carrier(char* data, std::size_t size) : part{data, size} {
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
    }
    carrier(const carrier&) = delete;
    carrier& operator=(const carrier&) = delete;

    void put(int fd) {
        ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    [[nodiscard]] int take() {
        const ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
        if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
            return -1;
        }
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
        return fd;
    }
};

task<> descriptors_travel(std::string directory) {
    const ends s = co_await local_connection(directory);
    const ends p = co_await piped();
    char sent[] = "with";
    char got[16] = {};
    carrier out(sent, 4);
    out.put(p.b);
    co_await gives(io::sendmsg(s.a, &out.message), 4);
    co_await gives(io::send(s.a, "without"), 7);
    co_await gives(io::close(p.b), 0);
    carrier in(got, sizeof got);
    co_await gives(io::recvmsg(s.b, &in.message, MSG_CMSG_CLOEXEC), 4, "it ends a message");
    const int writer = in.take();
    EXPECT_GE(writer, 0);
    co_await gives(io::recv(s.b, got), 7);
    co_await gives(io::write(writer, "x"), 1);
    co_await gives(io::read(p.a, got), 1);
    // A message that arrives while the receiver waits.
    carrier later(got, sizeof got);
    auto waiting = coil::eager(io::recvmsg(s.b, &later.message, MSG_CMSG_CLOEXEC));
    co_await coil::yield();
    carrier again(sent, 4);
    again.put(writer);
    co_await gives(io::sendmsg(s.a, &again.message), 4);
    const int n = co_await waiting;
    EXPECT_EQ(n, 4);
    co_await closed({later.take(), writer});
    co_await closed(s);
    co_await gives(io::close(p.a), 0);
}
TEST_P(LocalSockets, DescriptorsTravel) { run(descriptors_travel(directory())); }

/// A receive of all bytes with room for descriptors ends with the first message: the next one's
/// descriptors would replace the first one's.
task<> no_descriptor_is_replaced(std::string directory) {
    const ends s = co_await local_connection(directory);
    const ends p = co_await piped();
    char sent[] = "with";
    char got[16] = {};
    for (const int fd : {p.a, p.b}) {
        carrier out(sent, 4);
        out.put(fd);
        co_await gives(io::sendmsg(s.a, &out.message), 4);
    }
    co_await closed(p);
    carrier first(got, sizeof got);
    co_await gives(io::recvmsg(s.b, &first.message, MSG_WAITALL | MSG_CMSG_CLOEXEC) && io::nop(), 0,
                   "it breaks no chain");
    carrier second(got, sizeof got);
    co_await gives(io::recvmsg(s.b, &second.message, MSG_WAITALL | MSG_CMSG_CLOEXEC), 4);
    const ends travelled{first.take(), second.take()};
    co_await gives(io::write(travelled.b, "x"), 1);
    co_await gives(io::read(travelled.a, got), 1);
    co_await closed(travelled);
    co_await closed(s);
}
TEST_P(LocalSockets, G4_NoDescriptorIsReplaced) { run(no_descriptor_is_replaced(directory())); }

/// A descriptor that is not received is closed.
task<> descriptors_are_dropped(std::string directory) {
    const ends s = co_await local_connection(directory);
    char sent[] = "with";
    char got[16] = {};
    for (int way = 0; way < 3; ++way) {
        const ends p = co_await piped();
        {
            carrier out(sent, 4);
            out.put(p.b);
            co_await gives(io::sendmsg(s.a, &out.message), 4);
        }
        co_await gives(io::close(p.b), 0);
        if (way == 0) {
            co_await gives(io::recv(s.b, got), 4);
        } else if (way == 1) {
            carrier in(got, sizeof got);
            in.message.msg_controllen = 0;
            co_await gives(io::recvmsg(s.b, &in.message), 4);
            EXPECT_NE(in.message.msg_flags & MSG_CTRUNC, 0);
        } else {
            co_await gives(io::close(s.b), 0);
        }
        co_await gives(io::read(p.a, got), 0, "no writer is left");
        co_await gives(io::close(p.a), 0);
    }
    carrier wrong(sent, 4);
    wrong.put(-1);
    co_await gives(io::close(s.a), 0);
    const ends again = co_await local_connection(directory + "again");
    co_await gives(io::sendmsg(again.a, &wrong.message), -EBADF);
    co_await closed(again);
}
TEST_P(LocalSockets, DescriptorsAreDropped) { run(descriptors_are_dropped(directory())); }

// ---- multishot recvmsg

task<> message_stream() {
    const ends s{co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC),
                 co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC)};
    const address any;
    co_await gives(io::bind(s.a, any.get(), any.length), 0);
    co_await gives(io::bind(s.b, any.get(), any.length), 0);
    const address to = name_of(s.b);
    coil::buffer_pool_options options;
    options.buffers = 4;
    options.buffer_size = 256;
    coil::buffer_pool pool(options);
    const std::string large(200, 'l');
    {
        auto incoming = io::recvmsg_multishot(s.b, pool);
        for (int i = 0; i < 12; ++i) {
            const std::string sent = i % 4 == 1 ? "" : i % 4 == 3 ? large : std::string(3, 'x');
            co_await gives(io::sendto(s.a, sent, 0, to.get(), to.length),
                           static_cast<long>(sent.size()));
            auto message = co_await incoming.next();
            EXPECT_TRUE(message) << message.result();
            if (!message) {
                co_return;
            }
            ::sockaddr_in from{};
            EXPECT_EQ(message.name().size(), sizeof from);
            std::memcpy(&from, message.name().data(), sizeof from);
            EXPECT_EQ(ntohs(from.sin_port), name_of(s.a).port());
            const std::size_t room = 256 - 16 - sizeof(::sockaddr_storage);
            EXPECT_EQ(message.bytes().size(), std::min(sent.size(), room));
            EXPECT_EQ((message.flags() & MSG_TRUNC) != 0, sent.size() > room);
        }
    }
    EXPECT_EQ(pool.available(), pool.size());
    co_await closed(s);
}
TEST_P(LocalSockets, G2_AStreamOfMessages) { run(message_stream()); }

task<> messages_of_a_connection() {
    const ends s = co_await connected();
    coil::buffer_pool_options options;
    options.buffers = 2;
    options.buffer_size = 256;
    coil::buffer_pool pool(options);
    {
        auto incoming = io::recvmsg_multishot(s.b, pool);
        co_await gives(io::send(s.a, "abc"), 3);
        {
            const auto message = co_await incoming.next();
            EXPECT_TRUE(message) << message.result();
            if (message) {
                EXPECT_EQ(message.bytes().size(), 3U);
                EXPECT_EQ(message.name().size(), 0U);
            }
        }
        co_await gives(io::shutdown(s.a, SHUT_WR), 0);
        {
            const auto message = co_await incoming.next();
            EXPECT_TRUE(message) << "the end of the stream is an empty message: "
                                 << message.result();
            if (message) {
                EXPECT_EQ(message.bytes().size(), 0U);
            }
        }
        EXPECT_EQ(pool.available(), pool.size());
    }
    co_await closed(s);
}
TEST_P(LocalSockets, G2_MessagesOfAConnection) { run(messages_of_a_connection()); }

} // namespace

} // namespace conformance
