// recvmsg_multishot, and datagrams in general: whole, with sender and control data.

#include "io/stream_support.hpp"

#include <cstring>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/un.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::socket_pair;
using io_test::pool_of;
using io_test::put;
using io_test::some_turns;

namespace {

class RecvmsgStream : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(RecvmsgStream);

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A socket bound to 127.0.0.1, and its address.
struct udp_socket {
    udp_socket() : socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t length = sizeof address;
        auto* const a = reinterpret_cast<::sockaddr*>(&address);
        if (::bind(socket, a, length) != 0 || ::getsockname(socket, a, &length) != 0) {
            coil_test::fail_with_errno("udp");
        }
    }
    void send_to(const udp_socket& other, std::string_view text) const {
        if (::sendto(socket, text.data(), text.size(), 0,
                     reinterpret_cast<const ::sockaddr*>(&other.address),
                     sizeof other.address) != static_cast<ssize_t>(text.size())) {
            coil_test::fail_with_errno("sendto");
        }
    }
    descriptor socket;
    ::sockaddr_in address{};
};

TEST_P(RecvmsgStream, EachMessageWithItsSenderAlsoEmptyOnes) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(4, 512));
        const udp_socket server;
        const udp_socket one;
        const udp_socket two;
        auto incoming = io::recvmsg_multishot(server.socket, pool);
        for (const std::string_view text : {"first", "", "", "a longer one", ""}) {
            for (const udp_socket* from : {&one, &two}) {
                from->send_to(server, text);
                auto message = co_await incoming.next();
                EXPECT_TRUE(message);
                EXPECT_EQ(text_of(message->bytes()), text);
                EXPECT_EQ(message.result(), static_cast<int>(text.size()));
                EXPECT_EQ(message.flags(), 0);
                EXPECT_TRUE(message.control().empty());
                ::sockaddr_in sender{};
                EXPECT_EQ(message.name().size(), sizeof sender);
                std::memcpy(&sender, message.name().data(), sizeof sender);
                EXPECT_EQ(sender.sin_port, from->address.sin_port);
            }
        }
        EXPECT_EQ(pool.available(), pool.size());
    };
    run(main());
}

TEST_P(RecvmsgStream, DatagramsAreNeverCutByTheRestOfABuffer) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(4, 256));
        const udp_socket server;
        const udp_socket client;
        auto incoming = io::recv_multishot(server.socket, pool);
        for (std::size_t size = 1; size <= 256; size += 17) {
            const std::string text(size, static_cast<char>('a' + size % 26));
            client.send_to(server, text);
            EXPECT_EQ((co_await incoming.next())->text(), text);
        }
    };
    run(main());
}

TEST_P(RecvmsgStream, ALengthBeyondTheBufferIsNotTakenForData) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(2, 128));
        const udp_socket server;
        const udp_socket client;
        auto incoming = io::recvmsg_multishot(server.socket, pool, MSG_TRUNC, 16);
        const std::string text(1000, 'x');
        client.send_to(server, text);
        const auto message = co_await incoming.next();
        EXPECT_EQ(text_of(message.bytes()), text.substr(0, 128 - 16 - 16));
        EXPECT_NE(message.flags() & MSG_TRUNC, 0);
    };
    run(main());
}

TEST_P(RecvmsgStream, ALongMessageIsTruncatedAndFlagged) {
    auto main = []() -> task<> {
        // A header of 16 bytes and 13 for the name: the message begins at an odd offset.
        buffer_pool pool(pool_of(2, 64));
        const udp_socket server;
        const udp_socket client;
        auto incoming = io::recvmsg_multishot(server.socket, pool, 0, 13);
        const std::string text = "0123456789abcdefghijklmnopqrstuvwxyz";
        client.send_to(server, text);
        auto message = co_await incoming.next();
        EXPECT_EQ(text_of(message.bytes()), text.substr(0, 64 - 16 - 13));
        EXPECT_EQ(message.flags(), MSG_TRUNC);
        EXPECT_EQ(message.name().size(), 13U); // truncated to the requested size
        client.send_to(server, "short");
        message = co_await incoming.next();
        EXPECT_EQ(text_of(message.bytes()), "short");
        EXPECT_EQ(message.flags(), 0);
    };
    run(main());
}

TEST_P(RecvmsgStream, ABufferTooSmallForHeaderAndNameIsAnError) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(2, 64));
        const udp_socket server;
        const udp_socket client;
        auto incoming = io::recvmsg_multishot(server.socket, pool, 0, 128);
        client.send_to(server, "text");
        EXPECT_EQ((co_await incoming.next()).result(), -EFAULT);
        EXPECT_EQ(pool.available(), pool.size());
    };
    run(main());
}

void send_descriptors(int socket, std::span<const int> fds) {
    char byte = 'd';
    ::iovec part{&byte, 1};
    alignas(::cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    if (::sendmsg(socket, &message, 0) != 1) {
        coil_test::fail_with_errno("sendmsg");
    }
}

std::vector<descriptor> descriptors_of(received_message& message) {
    std::vector<descriptor> all;
    ::msghdr layout{};
    layout.msg_control = message.control().data();
    layout.msg_controllen = message.control().size();
    for (::cmsghdr* header = CMSG_FIRSTHDR(&layout); header != nullptr;
         header = CMSG_NXTHDR(&layout, header)) {
        for (std::size_t at = 0; at + sizeof(int) <= header->cmsg_len - CMSG_LEN(0);
             at += sizeof(int)) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
            all.emplace_back(fd);
        }
    }
    return all;
}

TEST_P(RecvmsgStream, ControlDataDescriptorsArrive) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(2, 512));
        const socket_pair s(SOCK_DGRAM);
        const coil_test::pipe_pair pipe;
        auto incoming = io::recvmsg_multishot(s.a, pool, MSG_CMSG_CLOEXEC, 0, 64);
        for (int i = 0; i < 3; ++i) {
            send_descriptors(s.b, std::array{pipe.out.operator int()});
            auto message = co_await incoming.next();
            EXPECT_EQ(text_of(message.bytes()), "d");
            EXPECT_EQ(message.flags() & (MSG_TRUNC | MSG_CTRUNC), 0);
            EXPECT_TRUE(message.name().empty());
            const std::vector<descriptor> received = descriptors_of(message);
            EXPECT_EQ(received.size(), 1U);
            EXPECT_EQ(::write(received.at(0), "y", 1), 1);
            char byte = 0;
            EXPECT_EQ(::read(pipe.in, &byte, 1), 1);
        }
        // Space for one: the kernel truncates the control data and closes the other descriptors.
        auto narrow =
            io::recvmsg_multishot(s.b, pool, MSG_CMSG_CLOEXEC, 0, CMSG_SPACE(sizeof(int)));
        const int out = pipe.out;
        send_descriptors(s.a, std::array{out, out, out, out});
        auto message = co_await narrow.next();
        EXPECT_NE(message.flags() & MSG_CTRUNC, 0);
        EXPECT_LE(descriptors_of(message).size(), 2U);
    };
    run(main());
}

TEST_P(RecvmsgStream, APoolSharedByBytesAndDatagrams) {
    auto main = [](io_test::kernel_features w) -> task<> {
        const socket_pair bytes;
        const udp_socket server;
        const udp_socket client;
        const auto one_of_each = [&](buffer_pool& pool, bool bytes_first) -> task<int> {
            auto stream = io::recv_multishot(bytes.a, pool);
            auto datagrams = io::recv_multishot(server.socket, pool);
            const auto of_bytes = [&]() -> task<> {
                put(bytes.b, "bytes");
                EXPECT_EQ((co_await stream.next())->text(), "bytes");
            };
            if (bytes_first) {
                co_await of_bytes();
            }
            client.send_to(server, "datagram");
            auto datagram = co_await timeout(datagrams.next(), 1s);
            if (!bytes_first) {
                co_await of_bytes();
            }
            char drop[16];
            ::recv(server.socket, drop, sizeof drop, MSG_DONTWAIT);
            co_return datagram ? 0 : datagram.result().operator int();
        };
        const bool can_share = w == io_test::kernel_features::now;
        buffer_pool first;
        EXPECT_EQ(co_await one_of_each(first, true), can_share ? -EINVAL : 0);
        buffer_pool second;
        EXPECT_EQ(co_await one_of_each(second, false), 0);
        buffer_pool third(pool_of(8, 512, false));
        EXPECT_EQ(co_await one_of_each(third, true), 0);
    };
    run(main(GetParam()));
}

TEST_P(RecvmsgStream, G6_ANetlinkSocketThatLostMessagesReportsIt) {
    const descriptor netlink{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)};
    if (netlink < 0) {
        GTEST_SKIP() << "no netlink sockets available";
    }
    const int smallest = 1;
    ::setsockopt(netlink, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest);
    auto main = [](int fd) -> task<> {
        buffer_pool pool(pool_of(8, 65536));
        auto incoming = io::recvmsg_multishot(fd, pool);
        struct {
            ::nlmsghdr header;
            ::rtgenmsg body;
        } request{};
        request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
        request.header.nlmsg_type = RTM_GETLINK + 1000; // invalid: answered with an error message
        request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
        // The answers exceed the socket's receive buffer.
        for (int i = 0; i < 100; ++i) {
            ::send(fd, &request, sizeof request, 0);
        }
        bool told = false;
        for (int i = 0; i < 100 && !told; ++i) {
            auto message = co_await timeout(incoming.next(), 100ms);
            told = message.result() == -ENOBUFS;
            if (message.result() == -ECANCELED) {
                break;
            }
        }
        EXPECT_TRUE(told);
        ::send(fd, &request, sizeof request, 0);
        EXPECT_GT((co_await incoming.next()).result(), 0);
    };
    run(main(netlink));
}

} // namespace
