// sendto, recvfrom, sendmsg, recvmsg: effects and results are those of the system calls.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::socket_pair;
using io_test::outcome;

namespace {

class Message : public io_test::Calls {
protected:
    struct endpoint {
        endpoint() : socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            ::socklen_t length = sizeof address;
            if (::bind(socket, generic(), length) != 0 ||
                ::getsockname(socket, generic(), &length) != 0) {
                coil_test::fail_with_errno("endpoint");
            }
        }
        ::sockaddr* generic() { return reinterpret_cast<::sockaddr*>(&address); }

        descriptor socket;
        ::sockaddr_in address{};
    };
};

TEST_F(Message, DatagramsCarryTheirSender) {
    endpoint a;
    endpoint b;
    EXPECT_EQ(result_of(io::sendto(a.socket, "hello", 0, b.generic(), sizeof b.address)), 5);
    char buf[16] = {};
    ::sockaddr_in from{};
    ::socklen_t length = sizeof from;
    EXPECT_EQ(
        result_of(io::recvfrom(b.socket, buf, 0, reinterpret_cast<::sockaddr*>(&from), &length)),
        5);
    EXPECT_STREQ(buf, "hello");
    EXPECT_EQ(length, sizeof from);
    EXPECT_EQ(from.sin_port, a.address.sin_port);
    EXPECT_EQ(from.sin_addr.s_addr, a.address.sin_addr.s_addr);
}

TEST_F(Message, RecvfromWithoutAnAddressAndTruncated) {
    endpoint a;
    endpoint b;
    ASSERT_EQ(result_of(io::sendto(a.socket, "hello", 0, b.generic(), sizeof b.address)), 5);
    char buf[3];
    // The datagram's size, as recvfrom(2) says.
    EXPECT_EQ(result_of(io::recvfrom(b.socket, buf, MSG_TRUNC, nullptr, nullptr)), 5);
    EXPECT_EQ(std::string(buf, 3), "hel");
    EXPECT_EQ(result_of(io::recvfrom(b.socket, buf, MSG_DONTWAIT, nullptr, nullptr)), -EAGAIN);
    EXPECT_EQ(result_of(io::recvfrom(-1, buf, 0, nullptr, nullptr)), -EBADF);
}

TEST_F(Message, RecvfromWaitsAndCanBeLimited) {
    endpoint b;
    char buf[4];
    ::sockaddr_in from{};
    ::socklen_t length = 5;
    EXPECT_EQ(
        result_of(timeout(
            io::recvfrom(b.socket, buf, 0, reinterpret_cast<::sockaddr*>(&from), &length), 5ms)),
        -ETIMEDOUT);
    EXPECT_EQ(length, 5U); // nothing was received
}

TEST_F(Message, SendtoFailsAsTheSystemCallDoes) {
    endpoint a;
    const socket_pair pair;
    EXPECT_EQ(result_of(io::sendto(a.socket, "x", 0, nullptr, 0)),
              outcome(::sendto(a.socket, "x", 1, 0, nullptr, 0)));
    EXPECT_EQ(result_of(io::sendto(a.socket, "x", 0, a.generic(), 3)),
              outcome(::sendto(a.socket, "x", 1, 0, a.generic(), 3)));
    for (const ::socklen_t length : {200U, 65535U, 65536U + 16U, ~0U}) {
        EXPECT_EQ(result_of(io::sendto(a.socket, "x", 0, a.generic(), length)),
                  outcome(::sendto(a.socket, "x", 1, 0, a.generic(), length)))
            << length;
    }
    EXPECT_EQ(result_of(io::sendto(0, "x", 0, nullptr, 0)), -ENOTSOCK);
}

TEST_F(Message, SendtoOnAKernelWhoseSendTakesNoAddress) {
    auto guard = std::make_shared<coil_test::door_backend::guard>();
    guard->hidden = {uring::opcode::sendmsg_zc};
    int messages = 0;
    guard->before_enter = [&](auto&, const std::vector<coil_test::sqe>& entries, unsigned) {
        messages += coil_test::contains(entries, uring::opcode::sendmsg) ? 1 : 0;
        EXPECT_FALSE(coil_test::contains(entries, uring::opcode::send));
        return 0;
    };
    io_context ctx(coil_test::with(
        [&](auto& o) { o.make_backend = coil_test::door_backend::factory(guard); }));
    auto main = [](endpoint& a, endpoint& b) -> task<> {
        EXPECT_EQ(co_await io::sendto(a.socket, "hello", 0, b.generic(), sizeof b.address), 5);
        EXPECT_EQ(
            co_await (io::sendto(a.socket, "you", 0, b.generic(), sizeof b.address) && io::nop()),
            0);
        for (const ::socklen_t length : {3U, 200U, 65536U + 16U, ~0U}) {
            EXPECT_EQ(co_await io::sendto(a.socket, "x", 0, b.generic(), length), -EINVAL)
                << length;
        }
    };
    endpoint a;
    endpoint b;
    coil_test::run_on(ctx, main(a, b));
    EXPECT_GE(messages, 6);
    char buf[8];
    EXPECT_EQ(::recv(b.socket, buf, sizeof buf, 0), 5);
    EXPECT_EQ(::recv(b.socket, buf, sizeof buf, 0), 3);
    EXPECT_EQ(std::string(buf, 3), "you");
}

TEST_F(Message, SeveralBuffersThereAndBack) {
    const socket_pair pair(SOCK_SEQPACKET);
    char one[] = {'o', 'n', 'e'};
    char two[] = {'t', 'w', 'o', '!'};
    std::array<::iovec, 2> parts{{{one, 3}, {two, 4}}};
    ::msghdr out{};
    out.msg_iov = parts.data();
    out.msg_iovlen = parts.size();
    EXPECT_EQ(result_of(io::sendmsg(pair.a, &out)), 7);
    char first[2];
    char rest[10];
    std::array<::iovec, 2> room{{{first, 2}, {rest, 10}}};
    ::msghdr in{};
    in.msg_iov = room.data();
    in.msg_iovlen = room.size();
    EXPECT_EQ(result_of(io::recvmsg(pair.b, &in)), 7);
    EXPECT_EQ(std::string(first, 2) + std::string(rest, 5), "onetwo!");
}

TEST_F(Message, ADescriptorTravelsAsControlData) {
    const socket_pair pair;
    const coil_test::pipe_pair p;
    char byte = 'x';
    ::iovec part{&byte, 1};
    alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ::cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int sent = p.out;
    std::memcpy(CMSG_DATA(header), &sent, sizeof sent);
    EXPECT_EQ(result_of(io::sendmsg(pair.a, &message)), 1);

    message.msg_controllen = sizeof control;
    EXPECT_EQ(result_of(io::recvmsg(pair.b, &message, MSG_CMSG_CLOEXEC)), 1);
    int received = -1;
    std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    const descriptor owned{received};
    EXPECT_EQ(::write(owned, "y", 1), 1);
    char c = 0;
    EXPECT_EQ(::read(p.in, &c, 1), 1);
    EXPECT_EQ(c, 'y');
}

TEST_F(Message, NoSignalWhenThePeerIsGone) {
    socket_pair pair;
    pair.b.reset();
    char byte = 'x';
    ::iovec part{&byte, 1};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    EXPECT_EQ(result_of(io::sendmsg(pair.a, &message)), -EPIPE);
    EXPECT_EQ(result_of(io::sendto(pair.a, "x", 0, nullptr, 0)), -EPIPE);
}

} // namespace
