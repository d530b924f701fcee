// What io_uring and the epoll backend must agree on: received data that does not fill its buffer or
// does not fit into it, and unusual provided buffers.

#include "uring/backends.hpp"

#include <coil/uring/buffer_ring.hpp>

#include <array>
#include <cstring>
#include <ostream>
#include <string_view>
#include <vector>

#include <sys/socket.h>

namespace uring_test {
namespace {

struct BothBackendsReceive : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsReceive);

/// A message of one part, with a descriptor.
void send_descriptor(int socket, std::string_view text, int fd) {
    alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    ::iovec part{const_cast<char*>(text.data()), text.size()};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ::cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    ASSERT_EQ(::sendmsg(socket, &message, 0), static_cast<ssize_t>(text.size()));
}

/// Room for a message of one part, with descriptors.
struct incoming {
    explicit incoming(std::size_t size) : text(size) {
        part = {text.data(), size};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
    [[nodiscard]] descriptor received() const {
        const ::cmsghdr* const head = CMSG_FIRSTHDR(&message);
        int fd = -1;
        if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
            std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
        }
        return descriptor{fd};
    }
    std::vector<char> text;
    ::iovec part{};
    ::msghdr message{};
    alignas(::cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
};

// ---- descriptors in messages

TEST_P(BothBackendsReceive, G4_AReceiveOfAllBytesWithRoomForDescriptorsEndsWithTheFirstMessage) {
    ring r{small(), make()};
    const stream_pair s;
    const pipe_pair first;
    const pipe_pair second;
    send_descriptor(s.b, "abcd", first.in);
    send_descriptor(s.b, "efgh", second.in);
    incoming in(16);
    queue(r, prep::recvmsg(s.a, &in.message, MSG_WAITALL), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, 4}, {2, 0}}));
    const descriptor from_first = in.received();
    EXPECT_GE(from_first, 0);
    incoming rest(16);
    EXPECT_EQ(run(r, prep::recvmsg(s.a, &rest.message, 0)), 4);
    const descriptor from_second = rest.received();
    EXPECT_GE(from_second, 0);
}

TEST_P(BothBackendsReceive, AReceiveOfAllBytesWithoutRoomForDescriptorsContinues) {
    ring r{small(), make()};
    const stream_pair s;
    incoming in(8);
    in.message.msg_control = nullptr;
    in.message.msg_controllen = 0;
    queue(r, prep::recvmsg(s.a, &in.message, MSG_WAITALL), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2);
    ASSERT_EQ(r.submit(), 2);
    ASSERT_EQ(::send(s.b, "abcd", 4, 0), 4);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::send(s.b, "efgh", 4, 0), 4);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, 8}, {2, 0}}));
}

TEST_P(BothBackendsReceive, ACancelledReceiveOfAllBytesReturnsTheBytesReceivedBefore) {
    ring r{small(), make()};
    const stream_pair s;
    std::array<char, 8> text{};
    std::array<char, 16> name{};
    ::iovec part{text.data(), text.size()};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = name.data();
    message.msg_namelen = name.size();
    message.msg_flags = MSG_OOB;
    queue(r, prep::recvmsg(s.a, &message, MSG_WAITALL), 1);
    ASSERT_EQ(r.submit(), 1);
    ASSERT_EQ(::send(s.b, "abcd", 4, 0), 4);
    EXPECT_TRUE(is_quiet(r, 5ms));
    queue(r, prep::cancel(1), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, 4}, {2, 0}}));
    EXPECT_EQ(message.msg_namelen, 0U); // the other end has no address
    EXPECT_EQ(message.msg_flags & MSG_OOB, 0);
    EXPECT_EQ(std::string_view(text.data(), 4), "abcd");
}

// ---- datagrams that do not fit

TEST_P(BothBackendsReceive, ATruncatedDatagramBreaksAChainThatWantsAllBytes) {
    ring r{small(), make()};
    const stream_pair s(SOCK_DGRAM);
    const std::map<std::uint64_t, int> broken{{1, 4}, {2, -ECANCELED}};
    const std::map<std::uint64_t, int> whole{{1, 4}, {2, 0}};
    std::array<char, 4> text{};
    for (const std::string_view sent : {"abcdefgh", "abcd"}) {
        const auto& expected = sent.size() > text.size() ? broken : whole;
        for (const int flags : {int{MSG_WAITALL}, 0}) {
            ASSERT_EQ(::send(s.b, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
            queue(r, prep::recv(s.a, text.data(), text.size(), flags), 1, sqe_flag::io_link);
            queue(r, prep::nop(), 2);
            EXPECT_EQ(results(r, 2), flags != 0 ? expected : whole) << sent << ' ' << flags;

            incoming in(text.size());
            ASSERT_EQ(::send(s.b, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
            queue(r, prep::recvmsg(s.a, &in.message, flags), 1, sqe_flag::io_link);
            queue(r, prep::nop(), 2);
            EXPECT_EQ(results(r, 2), flags != 0 ? expected : whole) << sent << ' ' << flags;
        }
    }
}

TEST_P(BothBackendsReceive, ATruncatedDatagramIsReportedInSpiteOfCqeSkip) {
    ring r{small(), make()};
    const stream_pair s(SOCK_DGRAM);
    char text[4];
    ASSERT_EQ(::send(s.b, "abcdefgh", 8, 0), 8);
    queue(r, prep::recv(s.a, text, sizeof text, MSG_WAITALL), 1, sqe_flag::cqe_skip_success);
    EXPECT_EQ(next(r).res, 4);
    ASSERT_EQ(::send(s.b, "abcd", 4, 0), 4);
    queue(r, prep::recv(s.a, text, sizeof text, MSG_WAITALL), 2, sqe_flag::cqe_skip_success);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 5ms));
}

TEST_P(BothBackendsReceive, TruncatedDescriptorsBreakAChainThatWantsAllBytes) {
    ring r{small(), make()};
    const stream_pair s;
    const pipe_pair p;
    send_descriptor(s.b, "abcd", p.in);
    incoming in(4);
    in.message.msg_controllen = sizeof(::cmsghdr); // not enough for the descriptor
    queue(r, prep::recvmsg(s.a, &in.message, MSG_WAITALL), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, 4}, {2, -ECANCELED}}));
    EXPECT_NE(in.message.msg_flags & MSG_CTRUNC, 0);
}

/// The bytes that did not fit are subtracted from the following buffers, up to an empty entry.
TEST_P(BothBackendsReceive, G6_AnIncrementalRingEndsTheSizeOfATruncatedDatagram) {
    ring r{small(), make()};
    const stream_pair s(SOCK_DGRAM);
    std::vector<char> memory(128);
    buffer_ring buffers;
    const int error = buffers.setup(r, 1, 4, true);
    if (error == -EINVAL) {
        GTEST_SKIP() << "this kernel has no incremental buffer rings";
    }
    ASSERT_EQ(error, 0);
    buffers.add(memory.data(), 64, 1);
    buffers.publish();
    const std::vector<char> text(1000, 'x');
    ASSERT_EQ(::send(s.b, text.data(), text.size(), 0), 1000);
    const cqe c = complete(r, selecting(prep::recv(s.a, nullptr, 0, MSG_TRUNC)));
    EXPECT_EQ(c.res, 1000);
    EXPECT_TRUE(has_buffer(c));
    EXPECT_EQ(buffer_id(c), 1);
    EXPECT_TRUE(has_more_buffer(c));
    EXPECT_EQ(buffers.head(), 1);
    buffers.add(memory.data() + 64, 64, 2);
    buffers.publish();
    ASSERT_EQ(::send(s.b, "abcd", 4, 0), 4);
    const cqe after = complete(r, selecting(prep::recv(s.a, nullptr, 0, 0)));
    EXPECT_EQ(after.res, 4);
    EXPECT_EQ(buffer_id(after), 2);
    EXPECT_EQ(std::string_view(memory.data() + 64, 4), "abcd");
}

// ---- a provided buffer without an address

struct outcome_with_buffer {
    int res;
    std::uint32_t flags;
    bool operator==(const outcome_with_buffer&) const = default;
};
std::ostream& operator<<(std::ostream& out, const outcome_with_buffer& one) {
    return out << one.res << " flags " << one.flags;
}
outcome_with_buffer of(const cqe& c) { return {c.res, c.flags & ~cqe_flag::sock_nonempty}; }

constexpr std::uint32_t names_7 = cqe_flag::buffer | 7U << cqe_flag::buffer_shift;

TEST_P(BothBackendsReceive, G6_AClassicBufferWithoutAnAddressCountsAsNone) {
    ring r{small(), make()};
    const stream_pair s;
    const pipe_pair p;
    ASSERT_EQ(::send(s.b, "abcd", 4, 0), 4);
    ASSERT_EQ(::write(p.out, "abcd", 4), 4);
    const auto provide = [&] { ASSERT_EQ(run(r, prep::provide_buffers(nullptr, 8, 1, 1, 7)), 0); };
    const auto left = [&] { return run(r, prep::remove_buffers(10, 1)); };
    ::iovec part{nullptr, 8};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ::msghdr multishot{};

    const outcome_with_buffer none{-ENOBUFS, 0};
    const outcome_with_buffer named{-ENOBUFS, names_7};
    const auto gives = [&](sqe entry, const outcome_with_buffer& expected, int rest) {
        entry.buf_group = 1;
        provide();
        EXPECT_EQ(of(complete(r, selecting(entry))), expected) << unsigned{entry.opcode};
        EXPECT_EQ(left(), rest) << unsigned{entry.opcode};
    };
    gives(prep::recv(s.a, nullptr, 8, 0), none, 1);
    gives(prep::recv_multishot(s.a, 0, 1), none, 1);
    gives(prep::read(p.in, nullptr, 8, prep::current_position), named, 0);
    gives(prep::readv(p.in, &part, 1, prep::current_position), named, 0);
    gives(prep::recvmsg(s.a, &message, 0), named, 0);
    gives(prep::recvmsg_multishot(s.a, &multishot, 0, 1), named, 0);
    gives(prep::send(s.a, nullptr, 8, 0), named, 0);
    if (r.supports(opcode::read_multishot)) {
        gives(prep::read_multishot(p.in, 0, prep::current_position, 1), none, 1);
    }
    // The buffer is selected immediately, so the read fails although the pipe is empty.
    const pipe_pair without;
    gives(prep::read(without.in, nullptr, 8, prep::current_position), named, 0);
}

TEST_P(BothBackendsReceive, G6_ARingsBufferWithoutAnAddressCountsAsNone) {
    ring r{small(), make()};
    const stream_pair s;
    const pipe_pair p;
    ASSERT_EQ(::send(s.b, "abcd", 4, 0), 4);
    ASSERT_EQ(::write(p.out, "abcd", 4), 4);
    buffer_ring buffers(r, 1, 8);
    buffers.add(nullptr, 64, 7);
    buffers.publish();
    ::iovec part{nullptr, 8};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ::msghdr multishot{};
    const outcome_with_buffer none{-ENOBUFS, 0};
    const outcome_with_buffer named{-ENOBUFS, names_7};
    const auto result = [&](const sqe& entry) { return of(complete(r, selecting(entry))); };

    EXPECT_EQ(result(prep::recv(s.a, nullptr, 8, 0)), none);
    EXPECT_EQ(result(prep::recv_multishot(s.a, 0, 1)), none);
    EXPECT_EQ(result(prep::read(p.in, nullptr, 8, prep::current_position)), none);
    EXPECT_EQ(result(prep::readv(p.in, &part, 1, prep::current_position)), none);
    EXPECT_EQ(result(prep::recvmsg(s.a, &message, 0)), named);
    EXPECT_EQ(result(prep::recvmsg_multishot(s.a, &multishot, 0, 1)), named);
    sqe bundle = prep::recv_multishot(s.a, 0, 1);
    bundle.ioprio |= recvsend_flag::bundle;
    EXPECT_EQ(result(bundle), (outcome_with_buffer{-EFAULT, 0})); // a bundle uses it
    EXPECT_EQ(buffers.head(), 0);
}

// ---- sends from a group

/// A send takes its buffer when it begins, and does not return it.
TEST_P(BothBackendsReceive, G6_AFailedSendUsesItsBuffer) {
    ring r{small(), make()};
    char memory[8] = {};
    for (const bool waits : {false, true}) {
        for (const bool cancelled : {false, true}) {
            if (cancelled && !waits) {
                continue;
            }
            stream_pair s;
            std::vector<char> text(1U << 16);
            while (waits && ::send(s.a, text.data(), text.size(), MSG_DONTWAIT) > 0) {
            }
            buffer_ring buffers(r, 1, 8);
            buffers.add(memory, sizeof memory, 7);
            buffers.publish();
            if (!waits) {
                s.b.reset();
            }
            queue(r, selecting(prep::send(s.a, nullptr, 0, MSG_NOSIGNAL)), 1);
            ASSERT_EQ(r.submit(), 1);
            if (waits) {
                EXPECT_TRUE(is_quiet(r, 5ms));
                EXPECT_EQ(buffers.head(), 1);
                cancelled ? queue(r, prep::cancel(1), 2) : s.b.reset();
            }
            cqe c = next(r);
            if (cancelled) {
                EXPECT_EQ(c.res, 0);
                c = next(r);
            }
            EXPECT_EQ(of(c), (outcome_with_buffer{cancelled ? -ECANCELED : -EPIPE, names_7}));
            EXPECT_EQ(buffers.head(), 1);
        }
    }
}

TEST_P(BothBackendsReceive, ASendToANonSocketUsesNoBuffer) {
    ring r{small(), make()};
    const pipe_pair p;
    char memory[8] = {};
    buffer_ring buffers(r, 1, 8);
    buffers.add(memory, sizeof memory, 7);
    buffers.publish();
    EXPECT_EQ(of(complete(r, selecting(prep::send(p.out, nullptr, 0, 0)))),
              (outcome_with_buffer{-ENOTSOCK, 0}));
    EXPECT_EQ(buffers.head(), 0);
}

} // namespace
} // namespace uring_test
