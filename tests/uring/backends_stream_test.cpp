// What io_uring and the epoll backend must agree on: multishot requests, bundles, and completion
// flags about the socket.

#include "uring/backends.hpp"

#include <coil/uring/buffer_ring.hpp>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

namespace uring_test {
namespace {

struct BothBackendsStream : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsStream);

/// A connection over 127.0.0.1.
struct tcp_pair {
    tcp_pair() : listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        ::sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof address;
        auto* const name = reinterpret_cast<::sockaddr*>(&address);
        a = descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        if (::bind(listener, name, size) != 0 || ::listen(listener, 4) != 0 ||
            ::getsockname(listener, name, &size) != 0 || ::connect(a, name, size) != 0) {
            throw std::system_error(errno, std::generic_category(), "tcp_pair");
        }
        b = descriptor{::accept(listener, nullptr, nullptr)};
    }
    descriptor listener;
    descriptor a;
    descriptor b;
};

/// A group of `count` buffers of `size` bytes.
struct group {
    group(ring& r, unsigned count, unsigned size, unsigned id = 1)
        : memory(std::size_t{count} * size), buffers(r, id, 16) {
        for (unsigned i = 0; i < count; ++i) {
            buffers.add(memory.data() + std::size_t{i} * size, size, static_cast<std::uint16_t>(i));
        }
        buffers.publish();
    }
    std::vector<char> memory;
    buffer_ring buffers;
};

TEST_P(BothBackendsStream, AFullReceiveSaysWhetherThereIsMore) {
    ring r{small(), make()};
    const tcp_pair s;
    char text[8];
    ASSERT_EQ(::send(s.b, "abcdefgh", 8, 0), 8);
    cqe c = complete(r, prep::recv(s.a, text, 0, 0));
    EXPECT_EQ(c.res, 0);
    EXPECT_NE(c.flags & cqe_flag::sock_nonempty, 0U); // nothing was asked for
    c = complete(r, prep::recv(s.a, text, 4, 0));
    EXPECT_EQ(c.res, 4);
    EXPECT_NE(c.flags & cqe_flag::sock_nonempty, 0U);
    c = complete(r, prep::recv(s.a, text, 4, 0));
    EXPECT_EQ(c.res, 4);
    EXPECT_EQ(c.flags & cqe_flag::sock_nonempty, 0U);
}

TEST_P(BothBackendsStream, AnAcceptSaysWhetherThereIsAnother) {
    ring r{small(), make()};
    const tcp_pair first;
    ::sockaddr_in address{};
    ::socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<::sockaddr*>(&address);
    ASSERT_EQ(::getsockname(first.listener, name, &size), 0);
    std::vector<descriptor> clients;
    for (int i = 0; i < 2; ++i) {
        clients.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::connect(clients.back(), name, size), 0);
    }
    for (const std::uint32_t expected : {cqe_flag::sock_nonempty, 0U}) {
        const cqe c = complete(r, prep::accept(first.listener, nullptr, nullptr, SOCK_CLOEXEC));
        const descriptor accepted{c.res};
        ASSERT_GE(c.res, 0);
        EXPECT_EQ(c.flags & cqe_flag::sock_nonempty, expected);
    }
}

TEST_P(BothBackendsStream, AStreamWithATotalEndsWhenItHasReceivedIt) {
    ring r{small(), make()};
    const stream_pair s;
    const group g(r, 8, 16);
    sqe receive = prep::recv_multishot(s.a, 0, 1);
    receive.optlen = 20;
    ASSERT_EQ(::send(s.b, "0123456789abcdefghijklmnop", 26, 0), 26);
    queue(r, receive, 1);
    cqe c = next(r);
    if (c.res == -EINVAL) {
        GTEST_SKIP() << "this kernel has no total length for multishot receives";
    }
    EXPECT_EQ(c.res, 16);
    EXPECT_TRUE(has_more(c));
    c = next(r);
    EXPECT_EQ(c.res, 10); // a buffer is filled beyond the total
    EXPECT_FALSE(has_more(c));
}

TEST_P(BothBackendsStream, ADatagramLongerThanItsBufferIsNotReportedLonger) {
    ring r{small(), make()};
    const stream_pair s(SOCK_DGRAM);
    const group g(r, 4, 128);
    const std::vector<char> text(1000, 'x');
    ASSERT_EQ(::send(s.b, text.data(), text.size(), 0), 1000);
    ::msghdr header{};
    queue(r, prep::recvmsg_multishot(s.a, &header, MSG_TRUNC, 1), 1);
    const cqe c = next(r);
    EXPECT_EQ(c.res, 128);
    recvmsg_out out{};
    std::memcpy(&out, g.memory.data(), sizeof out);
    EXPECT_EQ(out.payloadlen, 1000U);
}

TEST_P(BothBackendsStream, ABundleSendsAllThatItsGroupHas) {
    ring r{small(), make()};
    const stream_pair s;
    group g(r, 4, 8);
    std::memcpy(g.memory.data(), "00000000111111112222222233333333", 32);
    sqe send = selecting(prep::send(s.a, nullptr, 0, 0));
    send.ioprio = recvsend_flag::bundle;
    const cqe c = complete(r, send);
    EXPECT_EQ(c.res, 32);
    EXPECT_FALSE(has_more(c));
    char text[64];
    EXPECT_EQ(::recv(s.b, text, sizeof text, MSG_DONTWAIT), 32);
    EXPECT_EQ(std::string_view(text, 32), "00000000111111112222222233333333");
    EXPECT_EQ(complete(r, send).res, -ENOBUFS);
}

TEST_P(BothBackendsStream, ABundleWithALengthContinuesWithAnother) {
    ring r{small(), make()};
    const stream_pair s;
    const group g(r, 4, 8);
    sqe send = selecting(prep::send(s.a, nullptr, 20, 0));
    send.ioprio = recvsend_flag::bundle;
    queue(r, send, 1);
    cqe c = next(r);
    EXPECT_EQ(c.res, 16); // no part of a buffer
    EXPECT_TRUE(has_more(c));
    c = next(r);
    EXPECT_EQ(c.res, 16);
    EXPECT_FALSE(has_more(c));
}

TEST_P(BothBackendsStream, AStreamOfBundlesEndsWithTheLastBufferOfItsGroup) {
    ring r{small(), make()};
    const stream_pair s;
    const group g(r, 4, 8);
    sqe receive = prep::recv_multishot(s.a, 0, 1);
    receive.ioprio |= recvsend_flag::bundle;
    ASSERT_EQ(::send(s.b, "0123456789abcdefghijklmnopqrstuvwxyz", 36, 0), 36);
    queue(r, receive, 1);
    int bytes = 0;
    cqe c{};
    do {
        c = next(r);
        ASSERT_GT(c.res, 0); // the last completion has data as well
        bytes += c.res;
    } while (has_more(c));
    EXPECT_EQ(bytes, 32);
}

} // namespace
} // namespace uring_test
