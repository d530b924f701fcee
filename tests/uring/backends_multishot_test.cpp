// When multishot requests end, and how zero-copy sends complete, on io_uring and the epoll backend.

#include "uring/backends.hpp"

#include <coil/uring/buffer_ring.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace uring_test {
namespace {

struct BothBackendsMultishot : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsMultishot);

/// Two sockets connected over 127.0.0.1.
struct inet_pair {
    explicit inet_pair(int type = SOCK_STREAM) {
        const descriptor listener{bound(type)};
        a = descriptor{::socket(AF_INET, type | SOCK_CLOEXEC, 0)};
        if (type == SOCK_STREAM) {
            connect(a, listener);
            b = descriptor{::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)};
        } else {
            a = bound(type);
            b = bound(type);
            connect(a, b);
            connect(b, a);
        }
    }
    static descriptor bound(int type) {
        descriptor fd{::socket(AF_INET, type | SOCK_CLOEXEC, 0)};
        ::sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::bind(fd, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0 ||
            (type == SOCK_STREAM && ::listen(fd, 4) != 0)) {
            throw std::system_error(errno, std::generic_category(), "bind");
        }
        return fd;
    }
    static void connect(int from, int to) {
        ::sockaddr_in address{};
        ::socklen_t size = sizeof address;
        auto* const name = reinterpret_cast<::sockaddr*>(&address);
        if (::getsockname(to, name, &size) != 0 || ::connect(from, name, size) != 0) {
            throw std::system_error(errno, std::generic_category(), "connect");
        }
    }
    descriptor a;
    descriptor b;
};

/// A group of `count` buffers of `size` bytes.
struct group {
    group(ring& r, unsigned count, unsigned size, unsigned id = 1, unsigned entries = 16)
        : memory(std::size_t{count} * size), buffers(r, id, entries) {
        for (unsigned i = 0; i < count; ++i) {
            buffers.add(memory.data() + std::size_t{i} * size, size, static_cast<std::uint16_t>(i));
        }
        buffers.publish();
    }
    std::vector<char> memory;
    buffer_ring buffers;
};

/// The completions of the queued entries, until none arrives for a while.
std::vector<cqe> all_of(ring& r) {
    std::vector<cqe> found;
    while (!is_quiet(r, 5ms)) {
        found.push_back(next(r));
    }
    return found;
}

// ---- polls

TEST_P(BothBackendsMultishot, APollOfAFileThatIsAlwaysReadyEndsAtOnce) {
    ring r{small(), make()};
    const temporary_directory directory;
    const descriptor file{::open((directory / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    cqe c = complete(r, prep::poll_multishot(file, POLLIN | POLLOUT));
    EXPECT_EQ(c.res, POLLIN | POLLOUT);
    EXPECT_EQ(c.flags, 0U);
    EXPECT_TRUE(is_quiet(r, 1ms));
    EXPECT_EQ(run(r, prep::poll_multishot(file, POLLPRI)), -EINVAL);
    EXPECT_EQ(run(r, prep::poll_add(file, POLLIN)), POLLIN);
    EXPECT_EQ(run(r, prep::poll_add(file, POLLPRI)), -EINVAL);
    sqe level = prep::poll_add(file, POLLIN);
    level.len = poll_flag::add_level;
    EXPECT_EQ(run(r, level), -EINVAL);
    level.len = poll_flag::add_level | poll_flag::add_multi;
    EXPECT_EQ(run(r, level), -EINVAL);
}

// ---- messages

TEST_P(BothBackendsMultishot, AnEmptyDatagramEndsAReceiveOfMessages) {
    ring r{small(), make()};
    const inet_pair s{SOCK_DGRAM};
    const group g{r, 8, 64};
    ::msghdr message{};
    queue(r, prep::recvmsg_multishot(s.a, &message, 0, 1), 1);
    ASSERT_EQ(r.submit(), 1);
    ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
    cqe c = next(r);
    EXPECT_EQ(c.res, static_cast<int>(sizeof(recvmsg_out)) + 3);
    EXPECT_TRUE(has_more(c));
    ASSERT_EQ(::send(s.b, "", 0, 0), 0);
    c = next(r);
    EXPECT_EQ(c.res, static_cast<int>(sizeof(recvmsg_out)));
    EXPECT_TRUE(has_buffer(c));
    EXPECT_FALSE(has_more(c));
}

TEST_P(BothBackendsMultishot, AStreamThatUsedTheLastBufferWaitsForMoreData) {
    for (const bool messages : {false, true}) {
        for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
            ring r{small(), make()};
            const inet_pair s{type};
            const group g{r, 1, 64};
            ::msghdr message{};
            const sqe entry = messages ? prep::recvmsg_multishot(s.a, &message, 0, 1)
                                       : prep::recv_multishot(s.a, 0, 1);
            queue(r, entry, 1);
            ASSERT_EQ(r.submit(), 1);
            ASSERT_EQ(::send(s.b, "abc", 3, 0), 3);
            const cqe c = next(r);
            EXPECT_GE(c.res, 3);
            EXPECT_TRUE(has_more(c));
            const bool waits = is_quiet(r, 5ms);
            EXPECT_EQ(waits, type == SOCK_STREAM) << messages;
            if (waits) {
                ASSERT_EQ(::send(s.b, "def", 3, 0), 3);
            }
            EXPECT_EQ(next(r).res, -ENOBUFS);
        }
    }
}

TEST_P(BothBackendsMultishot, AReceiveLetsOthersRunAfterThirtyTwoResults) {
    ring_options options = small(256);
    ring r{options, make()};
    const inet_pair busy{SOCK_DGRAM};
    const inet_pair other{SOCK_DGRAM};
    const group g{r, 128, 8, 1, 128};
    queue(r, prep::recv_multishot(busy.a, 0, 1), 1);
    queue(r, prep::recv_multishot(other.a, 0, 1), 2);
    ASSERT_EQ(r.submit(), 2);
    EXPECT_TRUE(is_quiet(r, 1ms));
    for (int i = 0; i < 48; ++i) {
        ASSERT_EQ(::send(busy.b, "a", 1, 0), 1);
    }
    ASSERT_EQ(::send(other.b, "b", 1, 0), 1);
    std::map<std::uint64_t, int> count;
    int before = 0; // results of the busy socket before the other's result
    for (int i = 0; i < 49; ++i) {
        const cqe c = next(r);
        ++count[c.user_data];
        before += c.user_data == 1 && count[2] == 0 ? 1 : 0;
    }
    EXPECT_EQ(count[1], 48);
    EXPECT_EQ(count[2], 1);
    EXPECT_LE(before, 33);
}

TEST_P(BothBackendsMultishot, ABundleThatDiscardsUsesOneBuffer) {
    ring r{small(), make()};
    const inet_pair s;
    const group g{r, 4, 8};
    ASSERT_EQ(::send(s.b, "0123456789a", 11, 0), 11);
    for (const int expected : {8, 3}) {
        sqe entry = prep::recv(s.a, nullptr, 0, MSG_TRUNC);
        entry.ioprio = recvsend_flag::bundle;
        entry.buf_group = 1;
        EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), expected);
    }
}

TEST_P(BothBackendsMultishot, ABundleOfALocalStreamOrADatagramDiscardsNothing) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        ring r{small(), make()};
        int ends[2]{};
        ASSERT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
        const descriptor a{ends[0]};
        const descriptor b{ends[1]};
        const group g{r, 4, 8};
        ASSERT_EQ(::send(b, "0123456789a", 11, 0), 11);
        sqe entry = prep::recv(a, nullptr, 16, MSG_TRUNC);
        entry.ioprio = recvsend_flag::bundle;
        entry.buf_group = 1;
        EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), 11);
        EXPECT_EQ(std::string_view(g.memory.data(), 11), "0123456789a") << type;
        EXPECT_EQ(g.buffers.head(), 2);
    }
}

TEST_P(BothBackendsMultishot, BundlesThatDiscardEndWithTheLastBufferOfTheirGroup) {
    for (const bool classic : {false, true}) {
        ring r{small(), make()};
        const inet_pair s;
        const group in_ring{r, 2, 8};
        std::array<char, 16> memory{};
        constexpr unsigned classic_id = 2;
        ASSERT_EQ(run(r, prep::provide_buffers(memory.data(), 8, 2, classic_id, 0)), 0);
        ASSERT_EQ(::send(s.b, "0123456789abcdefghi", 19, 0), 19);
        sqe entry = prep::recv_multishot(s.a, MSG_TRUNC, classic ? classic_id : 1);
        entry.ioprio |= recvsend_flag::bundle;
        queue(r, entry, 1);
        ASSERT_EQ(r.submit(), 1);
        const std::vector<cqe> found = all_of(r);
        ASSERT_EQ(found.size(), 2U) << classic;
        EXPECT_EQ(found[0].res, 8);
        EXPECT_TRUE(has_more(found[0]));
        EXPECT_EQ(found[1].res, 8);
        EXPECT_FALSE(has_more(found[1])) << classic;
    }
}

// Without a length, io_uring takes as many buffers as earlier requests of the ring needed.
TEST_P(BothBackendsMultishot, TheLengthOfABundleSaysHowManyBuffersADatagramMayUse) {
    ring r{small(), make()};
    const inet_pair s{SOCK_DGRAM};
    const group g{r, 8, 8};
    for (const unsigned length : {8U, 16U, 24U}) {
        ASSERT_EQ(::send(s.b, "0123456789abcdefghijklm", 23, 0), 23);
        sqe entry = prep::recv(s.a, nullptr, length, 0);
        entry.ioprio = recvsend_flag::bundle;
        entry.buf_group = 1;
        EXPECT_EQ(run(r, entry, sqe_flag::buffer_select), std::min(static_cast<int>(length), 23));
    }
    EXPECT_EQ(g.buffers.head(), 6);
}

TEST_P(BothBackendsMultishot, TheLengthOfASendLimitsItsFirstBundle) {
    ring r{small(), make()};
    const stream_pair s;
    const group g{r, 4, 8};
    sqe entry = prep::send(s.a, nullptr, 15, 0);
    entry.ioprio = recvsend_flag::bundle;
    entry.buf_group = 1;
    queue(r, entry, 1, sqe_flag::buffer_select);
    ASSERT_EQ(r.submit(), 1);
    cqe c = next(r);
    EXPECT_EQ(c.res, 8);
    EXPECT_TRUE(has_more(c));
    c = next(r);
    EXPECT_EQ(c.res, 24);
    EXPECT_EQ(buffer_id(c), 1U);
    EXPECT_FALSE(has_more(c));
}

// ---- zero-copy sends

TEST_P(BothBackendsMultishot, AFailedZeroCopySendNotifiesToo) {
    ring r{small(), make()};
    const inet_pair s;
    const stream_pair local;
    const temporary_directory directory;
    const descriptor file{::open((directory / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::shutdown(s.a, SHUT_WR), 0);
    sqe unknown_flag = prep::send_zc(s.b, "x", 1, 0);
    unknown_flag.ioprio = 1U << 9;
    sqe unused_field = prep::send_zc(s.b, "x", 1, 0);
    unused_field.addr3 = 1;
    const std::vector<std::tuple<std::string_view, sqe, int, bool>> all{
        {"closed", prep::send_zc(s.a, "x", 1, 0), -EPIPE, true},
        {"local", prep::send_zc(local.a, "x", 1, 0), -EOPNOTSUPP, true},
        {"file", prep::send_zc(file, "x", 1, 0), -ENOTSOCK, true},
        {"none", prep::send_zc(1000, "x", 1, 0), -EBADF, true},
        {"flag", unknown_flag, -EINVAL, true},
        {"field", unused_field, -EINVAL, false},
    };
    for (const auto& [name, entry, error, notifies] : all) {
        queue(r, entry, 1);
        ASSERT_EQ(r.submit(), 1);
        const std::vector<cqe> found = all_of(r);
        ASSERT_EQ(found.size(), notifies ? 2U : 1U) << name;
        EXPECT_EQ(found[0].res, error) << name;
        EXPECT_EQ(found[0].flags, notifies ? cqe_flag::more : 0U) << name;
        if (notifies) {
            EXPECT_EQ(found[1].res, 0) << name;
            EXPECT_EQ(found[1].flags, cqe_flag::notif) << name;
        }
    }
}

TEST_P(BothBackendsMultishot, ACancelledZeroCopySendNotifiesToo) {
    ring r{small(), make()};
    const inet_pair s;
    const std::vector<char> much(std::size_t{64} << 20, 'x');
    queue(r, prep::send_zc(s.a, much.data(), static_cast<unsigned>(much.size()), 0), 1);
    ASSERT_EQ(r.submit(), 1);
    static_cast<void>(all_of(r)); // a part is sent, and the socket is full
    queue(r, prep::send_zc(s.a, "x", 1, 0), 2);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 5ms));
    queue(r, prep::cancel(2), 3);
    ASSERT_EQ(r.submit(), 1);
    std::vector<cqe> found = all_of(r);
    std::erase_if(found, [](const cqe& c) { return c.user_data == 1; });
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].user_data, 3U);
    EXPECT_EQ(found[1].user_data, 2U);
    EXPECT_EQ(found[1].res, -ECANCELED);
    EXPECT_EQ(found[1].flags, cqe_flag::more);
    EXPECT_EQ(found[2].user_data, 2U);
    EXPECT_EQ(found[2].res, 0);
    EXPECT_EQ(found[2].flags, cqe_flag::notif);
}

TEST_P(BothBackendsMultishot, AZeroCopySendOfABrokenChain) {
    ring r{small(), make()};
    const inet_pair s;
    queue(r, prep::nop_result(-5), 1, sqe_flag::io_link);
    queue(r, prep::send_zc(s.a, "x", 1, 0), 2);
    ASSERT_EQ(r.submit(), 2);
    const std::vector<cqe> found = all_of(r);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[1].res, -ECANCELED);
    EXPECT_EQ(found[1].flags, 0U);
    EXPECT_EQ(found[2].res, 0);
    EXPECT_EQ(found[2].flags, cqe_flag::notif);
}

TEST_P(BothBackendsMultishot, AZeroCopySendWithUnknownFlagsReportsNoUsage) {
    ring r{small(), make()};
    const inet_pair s;
    sqe entry = prep::send_zc(s.a, "x", 1, 0);
    entry.ioprio = 0xffff;
    const cqe failed = complete(r, entry);
    EXPECT_EQ(failed.res, -EINVAL);
    EXPECT_EQ(failed.flags, cqe_flag::more);
    const cqe notification = next(r);
    EXPECT_EQ(notification.res, 0);
    EXPECT_EQ(notification.flags, cqe_flag::notif);
}

/// A documented difference between the backends.
TEST_P(BothBackendsMultishot, OnAThreadAFileThatCannotBePolledIsRefused) {
    ring r{small(), make()};
    const descriptor file{::memfd_create("file", MFD_CLOEXEC)};
    const sqe entry = prep::accept_multishot(file, 0);
    EXPECT_EQ(run(r, entry), -ENOTSOCK);
    EXPECT_EQ(run(r, entry, sqe_flag::async), emulated() ? -ENOTSOCK : -EBADFD);
}

} // namespace
} // namespace uring_test
