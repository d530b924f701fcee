#include "support.hpp"

#include <array>
#include <thread>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

// Builders of prep_net.hpp on loopback sockets.

namespace uring_test {
namespace {

using PrepNet = with_io_uring;

struct address {
    address() { in.sin_family = AF_INET, in.sin_addr.s_addr = htonl(INADDR_LOOPBACK); }
    explicit address(int fd) { EXPECT_EQ(::getsockname(fd, generic(), &len), 0); }
    ::sockaddr* generic() { return reinterpret_cast<::sockaddr*>(&in); }
    ::sockaddr_in in{};
    ::socklen_t len = sizeof in;
};

descriptor listener() {
    descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    address a;
    EXPECT_EQ(::bind(fd, a.generic(), a.len), 0);
    EXPECT_EQ(::listen(fd, 16), 0);
    return fd;
}

descriptor connected_to(int server) {
    descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    address a{server};
    EXPECT_EQ(::connect(fd, a.generic(), a.len), 0);
    return fd;
}

struct tcp_pair {
    tcp_pair() {
        const descriptor server = listener();
        one = connected_to(server);
        other = descriptor{::accept4(server, nullptr, nullptr, SOCK_CLOEXEC)};
        EXPECT_GE(other, 0);
    }
    descriptor one;
    descriptor other;
};

TEST_F(PrepNet, AConnectionFromSocketToShutdown) {
    ring r{8};
    COIL_NEEDS(r, socket);
    const descriptor server{run(r, prep::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP))};
    ASSERT_GE(server, 0);
    EXPECT_EQ(::fcntl(server, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(run(r, prep::socket(-1, 0, 0)), outcome(::socket(-1, 0, 0)));
    address a;
    if (r.supports(opcode::bind)) {
        EXPECT_EQ(run(r, prep::bind(server, a.generic(), a.len)), 0);
        EXPECT_EQ(run(r, prep::bind(server, a.generic(), a.len)), -EINVAL); // already bound
        EXPECT_EQ(run(r, prep::listen(server, 8)), 0);
    } else {
        ASSERT_EQ(::bind(server, a.generic(), a.len), 0);
        ASSERT_EQ(::listen(server, 8), 0);
    }
    address bound{server};
    EXPECT_NE(bound.in.sin_port, 0);

    const descriptor client{run(r, prep::socket(AF_INET, SOCK_STREAM, 0))};
    EXPECT_EQ(run(r, prep::connect(client, bound.generic(), bound.len)), 0);
    address peer;
    peer.in = {};
    const descriptor accepted{
        run(r, prep::accept(server, peer.generic(), &peer.len, SOCK_CLOEXEC | SOCK_NONBLOCK))};
    ASSERT_GE(accepted, 0);
    EXPECT_EQ(peer.len, sizeof peer.in);
    EXPECT_EQ(peer.in.sin_port, address{client}.in.sin_port);
    EXPECT_TRUE(::fcntl(accepted, F_GETFL) & O_NONBLOCK);

    char buf[16] = {};
    EXPECT_EQ(run(r, prep::send(client, "hello", 5, MSG_NOSIGNAL)), 5);
    EXPECT_EQ(run(r, prep::recv(accepted, buf, sizeof buf, MSG_PEEK)), 5);
    EXPECT_EQ(run(r, prep::recv(accepted, buf, 3, 0)), 3);
    EXPECT_EQ(run(r, prep::recv(accepted, buf, sizeof buf, 0)), 2);
    EXPECT_EQ(run(r, prep::shutdown(client, SHUT_WR)), 0);
    EXPECT_EQ(run(r, prep::recv(accepted, buf, sizeof buf, 0)), 0);
    EXPECT_EQ(run(r, prep::send(client, "x", 1, MSG_NOSIGNAL)), -EPIPE);
    EXPECT_EQ(run(r, prep::shutdown(server, 99)), -EINVAL);
}

TEST_F(PrepNet, ARefusedConnection) {
    ring r{8};
    address closed_address;
    {
        const descriptor server = listener();
        closed_address = address{server};
    }
    const descriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(run(r, prep::connect(client, closed_address.generic(), closed_address.len)),
              -ECONNREFUSED);
}

TEST_F(PrepNet, AcceptMultishotContinues) {
    ring r{8};
    const descriptor server = listener();
    queue(r, prep::accept_multishot(server, SOCK_CLOEXEC), 1);
    ASSERT_EQ(r.submit(), 1);
    for (int i = 0; i < 3; ++i) {
        const descriptor client = connected_to(server);
        const cqe c = next(r);
        if (c.res == -EINVAL) {
            GTEST_SKIP() << "this kernel has no multishot accept";
        }
        const descriptor accepted{c.res};
        EXPECT_GE(accepted, 0);
        EXPECT_TRUE(c.flags & cqe_flag::more);
        EXPECT_EQ(::send(client, "x", 1, 0), 1);
        char byte = 0;
        EXPECT_EQ(::recv(accepted, &byte, 1, 0), 1);
    }
    EXPECT_EQ(run(r, prep::nop()), 0);
    queue(r, prep::cancel(1), 2);
    bool ended = false;
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        if (c.user_data == 1) {
            EXPECT_EQ(c.res, -ECANCELED);
            EXPECT_FALSE(c.flags & cqe_flag::more);
            ended = true;
        }
    }
    EXPECT_TRUE(ended);
}

TEST_F(PrepNet, DirectSockets) {
    ring r{8};
    COIL_NEEDS(r, socket);
    std::array<int, 4> table{-1, -1, -1, -1};
    ASSERT_EQ(r.get_backend().do_register(register_op::files, table.data(), 4), 0);
    const descriptor server = listener();
    address a{server};
    EXPECT_EQ(run(r, prep::socket_direct(AF_INET, SOCK_STREAM, 0, 1)), 0);
    EXPECT_EQ(run(r, prep::connect(1, a.generic(), a.len), sqe_flag::fixed_file), 0);
    EXPECT_EQ(run(r, prep::accept_direct(server, nullptr, nullptr, 0, 3)), 0);
    EXPECT_EQ(run(r, prep::send(1, "abc", 3, 0), sqe_flag::fixed_file), 3);
    char buf[8] = {};
    EXPECT_EQ(run(r, prep::recv(3, buf, 8, 0), sqe_flag::fixed_file), 3);
    EXPECT_STREQ(buf, "abc");

    EXPECT_EQ(run(r, prep::socket_direct(AF_INET, SOCK_STREAM, 0, file_index_alloc)), 0);
    EXPECT_EQ(run(r, prep::connect(0, a.generic(), a.len), sqe_flag::fixed_file), 0);
    queue(r, prep::accept_multishot_direct(server, 0), 50);
    cqe c = next(r);
    EXPECT_EQ(c.user_data, 50U);
    EXPECT_EQ(c.res, 2); // the last free slot
    EXPECT_EQ(run(r, prep::send(0, "d", 1, 0), sqe_flag::fixed_file), 1);
    EXPECT_EQ(run(r, prep::recv(2, buf, 8, 0), sqe_flag::fixed_file), 1);
    queue(r, prep::cancel_any(), 51);
    while (c.user_data != 51) {
        c = next(r);
    }
}

TEST_F(PrepNet, Datagrams) {
    ring r{8};
    const descriptor one{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const descriptor other{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    address a;
    ASSERT_EQ(::bind(one, a.generic(), a.len), 0);
    ASSERT_EQ(::bind(other, a.generic(), a.len), 0);
    address to{other};

    char left[3] = {};
    char right[8] = {};
    std::array<::iovec, 2> parts{{{left, 2}, {right, 7}}};
    address from;
    from.in = {};
    ::msghdr message{};
    message.msg_name = &from.in;
    message.msg_namelen = sizeof from.in;
    message.msg_iov = parts.data();
    message.msg_iovlen = 2;
    ::iovec out{const_cast<char*>("message"), 7};
    ::msghdr outgoing{};
    outgoing.msg_name = &to.in;
    outgoing.msg_namelen = sizeof to.in;
    outgoing.msg_iov = &out;
    outgoing.msg_iovlen = 1;
    EXPECT_EQ(run(r, prep::sendmsg(one, &outgoing, 0)), 7);
    EXPECT_EQ(run(r, prep::recvmsg(other, &message, 0)), 7);
    EXPECT_STREQ(left, "me");
    EXPECT_STREQ(right, "ssage");
    EXPECT_EQ(from.in.sin_port, address{one}.in.sin_port);
    EXPECT_EQ(message.msg_namelen, sizeof from.in);

    const int sent = run(r, prep::sendto(one, "to", 2, 0, to.generic(), to.len));
    if (sent == -EINVAL || sent == -EDESTADDRREQ) {
        GTEST_SKIP() << "this kernel's send does not support an address";
    }
    EXPECT_EQ(sent, 2);
    EXPECT_EQ(run(r, prep::recv(other, right, 8, 0)), 2);
}

// A provided-buffer ring of four buffers of 16 bytes.
class buffer_group {
public:
    buffer_group(ring& r, std::uint16_t group) : r_(r), group_(group) {
        buf_reg reg{};
        reg.ring_addr = prep::detail::address(entries_);
        reg.ring_entries = 4;
        reg.bgid = group;
        error = r.get_backend().do_register(register_op::pbuf_ring, &reg, 1);
        if (error != 0) {
            return;
        }
        for (std::uint16_t i = 0; i < 4; ++i) {
            entries_[i].addr = prep::detail::address(&memory[i * 16U]);
            entries_[i].len = 16;
            entries_[i].bid = i;
        }
        auto* head = reinterpret_cast<buf_ring*>(entries_);
        EXPECT_EQ(head->bufs(), entries_);
        std::atomic_ref<std::uint16_t>(head->tail).store(4, std::memory_order_release);
    }
    ~buffer_group() {
        buf_reg reg{};
        reg.bgid = group_;
        if (error == 0) {
            EXPECT_EQ(r_.get_backend().do_register(register_op::unregister_pbuf_ring, &reg, 1), 0);
        }
    }
    std::string_view content(const cqe& c) const {
        return {memory.data() + buffer_id(c) * 16, static_cast<std::size_t>(c.res)};
    }

    std::array<char, 64> memory{};
    int error = 0;

private:
    ring& r_;
    std::uint16_t group_;
    alignas(4096) buf entries_[4] = {};
};

TEST_F(PrepNet, RecvMultishotContinues) {
    ring r{8};
    buffer_group buffers{r, 5};
    if (buffers.error != 0) {
        GTEST_SKIP() << "this kernel has no buffer rings";
    }
    tcp_pair t;
    queue(r, prep::recv_multishot(t.one, 0, 5), 1);
    ASSERT_EQ(r.submit(), 1);
    for (const char* text : {"one", "two"}) {
        ASSERT_EQ(::send(t.other, text, 3, 0), 3);
        const cqe c = next(r);
        EXPECT_EQ(c.res, 3);
        EXPECT_TRUE(c.flags & cqe_flag::buffer);
        EXPECT_TRUE(c.flags & cqe_flag::more);
        EXPECT_EQ(buffers.content(c), text);
    }
    t.other.reset();
    const cqe last = next(r);
    EXPECT_EQ(last.res, 0);
    EXPECT_FALSE(last.flags & cqe_flag::more);
}

TEST_F(PrepNet, RecvmsgMultishotReportsTheSender) {
    ring r{8};
    buffer_group buffers{r, 5};
    if (buffers.error != 0) {
        GTEST_SKIP() << "this kernel has no buffer rings";
    }
    // 16 bytes of recvmsg_out leave no space in a small buffer, so one large buffer is used.
    const descriptor one{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const descriptor other{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    address a;
    ASSERT_EQ(::bind(one, a.generic(), a.len), 0);
    ASSERT_EQ(::bind(other, a.generic(), a.len), 0);
    alignas(16) std::array<char, 256> memory{};
    EXPECT_EQ(run(r, prep::provide_buffers(memory.data(), 256, 1, 6, 0)), 0);
    ::msghdr shape{};
    shape.msg_namelen = sizeof(::sockaddr_in);
    queue(r, prep::recvmsg_multishot(other, &shape, 0, 6), 1);
    ASSERT_EQ(r.submit(), 1);
    address to{other};
    ASSERT_EQ(::sendto(one, "hello", 5, 0, to.generic(), to.len), 5);
    const cqe c = next(r);
    ASSERT_GT(c.res, 0) << c.res;
    recvmsg_out out{};
    std::memcpy(&out, memory.data(), sizeof out);
    EXPECT_EQ(out.namelen, sizeof(::sockaddr_in));
    EXPECT_EQ(out.payloadlen, 5U);
    ::sockaddr_in from{};
    std::memcpy(&from, memory.data() + sizeof out, sizeof from);
    EXPECT_EQ(from.sin_port, address{one}.in.sin_port);
    EXPECT_EQ(std::string_view(memory.data() + sizeof out + sizeof from, 5), "hello");
    queue(r, prep::cancel(1), 2);
    for (cqe end = next(r); end.user_data != 2;) {
        end = next(r);
    }
}

TEST_F(PrepNet, SendBundleSendsTheBuffersOfAGroup) {
    ring r{8};
    buffer_group buffers{r, 5};
    if (buffers.error != 0 || (r.features() & feature::recvsend_bundle) == 0) {
        GTEST_SKIP() << "this kernel has no bundles";
    }
    tcp_pair t;
    for (std::size_t i = 0; i < buffers.memory.size(); ++i) {
        buffers.memory.at(i) = static_cast<char>('a' + i % 16);
    }
    EXPECT_EQ(run(r, prep::send_bundle(t.one, MSG_WAITALL, 5)), 64);
    std::array<char, 65> got{};
    EXPECT_EQ(::recv(t.other, got.data(), 65, 0), 64);
    EXPECT_EQ(std::string_view(got.data(), 64), std::string_view(buffers.memory.data(), 64));
}

TEST_F(PrepNet, ZeroCopySendsSayWhenTheBufferIsFree) {
    ring r{8};
    COIL_NEEDS(r, sendmsg_zc);
    tcp_pair t;
    std::string data(10000, 'z');
    ::iovec registered{data.data(), data.size()};
    ASSERT_EQ(r.get_backend().do_register(register_op::buffers, &registered, 1), 0);
    ::msghdr message{};
    message.msg_iov = &registered;
    message.msg_iovlen = 1;
    const sqe sends[] = {
        prep::send_zc(t.one, data.data(), data.size(), MSG_WAITALL),
        prep::send_zc_fixed(t.one, data.data() + 100, 9900, MSG_WAITALL, 0),
        prep::sendmsg_zc(t.one, &message, MSG_WAITALL),
        prep::send_zc(t.one, data.data(), data.size(), MSG_WAITALL, recvsend_flag::zc_report_usage),
    };
    std::size_t total = 0;
    std::size_t received = 0;
    std::thread reader{[&] {
        std::array<char, 4096> buf{};
        for (ssize_t n; (n = ::recv(t.other, buf.data(), buf.size(), 0)) > 0;) {
            received += static_cast<std::size_t>(n);
        }
    }};
    for (const sqe& s : sends) {
        const cqe result = complete(r, s);
        EXPECT_GT(result.res, 9000);
        EXPECT_TRUE(result.flags & cqe_flag::more);
        total += static_cast<std::size_t>(result.res);
        const cqe free = next(r);
        EXPECT_EQ(free.user_data, result.user_data);
        EXPECT_TRUE(free.flags & cqe_flag::notif);
        if (s.ioprio & recvsend_flag::zc_report_usage) { // loopback always copies
            EXPECT_EQ(static_cast<std::uint32_t>(free.res), notif_usage_zc_copied);
        }
    }
    t.one.reset();
    reader.join();
    EXPECT_EQ(received, total);
}

TEST_F(PrepNet, SocketOptions) {
    ring r{8};
    COIL_NEEDS(r, uring_cmd);
    const descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int on = 1;
    const int set = run(r, prep::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    if (set == -EOPNOTSUPP) {
        GTEST_SKIP() << "this kernel has no socket option commands";
    }
    EXPECT_EQ(set, 0);
    EXPECT_EQ(run(r, prep::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)), 0);
    int got = 0;
    ::socklen_t len = sizeof got;
    ASSERT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &got, &len), 0);
    EXPECT_EQ(got, 1);
    got = 0;
    EXPECT_EQ(run(r, prep::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &got, sizeof got)),
              static_cast<int>(sizeof got));
    EXPECT_EQ(got, 1);
    EXPECT_EQ(run(r, prep::setsockopt(fd, SOL_SOCKET, 9999, &on, sizeof on)), -ENOPROTOOPT);
}

TEST_F(PrepNet, LengthsBeyondOneTransferAreCut) {
    EXPECT_EQ(prep::send(0, nullptr, 0x7fffffffffffffff, 0).len, 0x7ffff000U);
    EXPECT_EQ(prep::recv(0, nullptr, 0x100000001, 0).len, 0x7ffff000U);
    EXPECT_EQ(prep::recv(0, nullptr, 0x7fffefff, 0).len, 0x7fffefffU);
}

TEST_F(PrepNet, AChainAnswersAndReadsTheNextRequest) {
    ring r{8};
    tcp_pair t;
    char buf[8] = {};
    queue(r, prep::send(t.one, "pong", 4, MSG_NOSIGNAL | MSG_WAITALL), 1, sqe_flag::io_link);
    queue(r, prep::recv(t.one, buf, sizeof buf, 0), 2);
    ASSERT_EQ(r.submit(), 2);
    EXPECT_EQ(next(r).res, 4);
    ASSERT_EQ(::send(t.other, "ping", 4, 0), 4);
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, 2U);
    EXPECT_EQ(c.res, 4);
    EXPECT_STREQ(buf, "ping");
}

} // namespace
} // namespace uring_test
