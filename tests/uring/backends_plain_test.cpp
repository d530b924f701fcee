// What io_uring and the epoll backend must agree on: sends and receives without options, alone and
// in chains. The epoll backend executes such a send without a request if it can.

#include "uring/backends.hpp"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

namespace uring_test {
namespace {

struct BothBackendsPlain : BothBackends {
    std::unique_ptr<ring> made;
    stream_pair pair;
    std::array<char, 16> buffer{};

    /// On the epoll backend, the first send on a descriptor does not take the fast path.
    void SetUp() override {
        BothBackends::SetUp();
        if (IsSkipped()) {
            return;
        }
        made = std::make_unique<ring>(small(), make());
        queue(r(), prep::send(pair.a, "x", 1, 0), 99);
        ASSERT_EQ(r().submit(), 1);
        ASSERT_EQ(next(r()).res, 1);
        ASSERT_EQ(received(), "x");
    }

    ring& r() const { return *made; }
    /// What has arrived at the other end.
    std::string received() const {
        std::array<char, 256> text{};
        const ssize_t n = ::recv(pair.b, text.data(), text.size(), MSG_DONTWAIT);
        return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
    }
    void send(std::string_view text, std::uint64_t user_data, std::uint8_t flags = 0,
              int msg_flags = 0) {
        queue(r(), prep::send(pair.a, text.data(), text.size(), msg_flags), user_data, flags);
    }
    void receive(std::uint64_t user_data, std::uint8_t flags = 0) {
        queue(r(), prep::recv(pair.a, buffer.data(), buffer.size(), 0), user_data, flags);
    }
};
COIL_ON_BOTH_BACKENDS(BothBackendsPlain);

using outcomes = std::map<std::uint64_t, int>;

TEST_P(BothBackendsPlain, AReplyIsReceivedByTheSameChain) {
    send("ping", 1, sqe_flag::io_link);
    receive(2);
    ASSERT_EQ(r().submit(), 2);
    EXPECT_EQ(received(), "ping");
    const cqe sent = next(r());
    EXPECT_EQ(sent.user_data, 1U);
    EXPECT_EQ(sent.res, 4);
    EXPECT_TRUE(is_quiet(r(), 5ms));
    ASSERT_EQ(::send(pair.b, "pong!", 5, 0), 5);
    const cqe answer = next(r());
    EXPECT_EQ(answer.user_data, 2U);
    EXPECT_EQ(answer.res, 5);
    EXPECT_EQ(std::string_view(buffer.data(), 5), "pong!");
}

TEST_P(BothBackendsPlain, ASilentSendPostsNothingAndItsChainContinues) {
    send("ping", 1, sqe_flag::io_link | sqe_flag::cqe_skip_success);
    receive(2);
    ASSERT_EQ(r().submit(), 2);
    EXPECT_EQ(received(), "ping");
    ASSERT_EQ(::send(pair.b, "pong", 4, 0), 4);
    const cqe answer = next(r());
    EXPECT_EQ(answer.user_data, 2U);
    EXPECT_EQ(answer.res, 4);
}

TEST_P(BothBackendsPlain, G13_AnInvalidEntryAfterAPlainSendPreventsTheSend) {
    send("ping", 1, sqe_flag::io_link);
    sqe wrong = prep::recv(pair.a, buffer.data(), buffer.size(), 0);
    wrong.ioprio = 0x8000;
    queue(r(), wrong, 2);
    ASSERT_EQ(r().submit(), 2);
    EXPECT_EQ(results(r(), 2), (outcomes{{1, -ECANCELED}, {2, -EINVAL}}));
    EXPECT_EQ(received(), "");
}

TEST_P(BothBackendsPlain, AChainOfThreeIsExecutedInOrder) {
    send("one ", 1, sqe_flag::io_link);
    send("two ", 2, sqe_flag::io_link);
    send("three", 3);
    ASSERT_EQ(r().submit(), 3);
    for (std::uint64_t i = 1; i <= 3; ++i) {
        EXPECT_EQ(next(r()).user_data, i);
    }
    EXPECT_EQ(received(), "one two three");
}

TEST_P(BothBackendsPlain, G13_AFailedSendCancelsTheRestOfItsChain) {
    pair.b = descriptor{};
    send("ping", 1, sqe_flag::io_link | sqe_flag::cqe_skip_success);
    receive(2);
    ASSERT_EQ(r().submit(), 2);
    // The failure is reported despite cqe_skip_success; the rest of the chain posts nothing.
    const cqe failed = next(r());
    EXPECT_EQ(failed.user_data, 1U);
    EXPECT_EQ(failed.res, -EPIPE);
    EXPECT_TRUE(is_quiet(r(), 5ms));

    send("ping", 3, sqe_flag::io_link);
    receive(4);
    ASSERT_EQ(r().submit(), 2);
    EXPECT_EQ(results(r(), 2), (outcomes{{3, -EPIPE}, {4, -ECANCELED}}));

    send("ping", 5);
    ASSERT_EQ(r().submit(), 1);
    EXPECT_EQ(results(r(), 1), (outcomes{{5, -EPIPE}}));
}

TEST_P(BothBackendsPlain, WaitallSendsEverythingBeforeItsChainContinues) {
    std::string much(4 << 20, ' ');
    for (std::size_t i = 0; i < much.size(); ++i) {
        much[i] = static_cast<char>('a' + i % 23);
    }
    send(much, 1, sqe_flag::io_link, MSG_WAITALL);
    receive(2);
    ASSERT_EQ(r().submit(), 2);
    std::string arrived;
    int sent = 0;
    while (arrived.size() < much.size()) {
        std::vector<char> part(1 << 16);
        const ssize_t n = ::recv(pair.b, part.data(), part.size(), MSG_DONTWAIT);
        if (n > 0) {
            arrived.append(part.data(), static_cast<std::size_t>(n));
            continue;
        }
        ASSERT_TRUE(n < 0 && errno == EAGAIN);
        r().wait(1ms);
        if (const cqe* const c = r().peek()) {
            sent = c->res;
            r().advance(1);
        }
    }
    EXPECT_EQ(arrived, much);
    if (sent == 0) {
        sent = next(r()).res;
    }
    EXPECT_EQ(sent, 4 << 20);
    ASSERT_EQ(::send(pair.b, "done", 4, 0), 4);
    EXPECT_EQ(results(r(), 1), (outcomes{{2, 4}}));
}

TEST_P(BothBackendsPlain, APlainSendDoesNotOvertakeASendThatWaits) {
    const std::string much(4 << 20, 'a');
    send(much, 1, 0, MSG_WAITALL);
    ASSERT_EQ(r().submit(), 1);
    std::string arrived(1 << 17, ' ');
    ASSERT_EQ(::recv(pair.b, arrived.data(), arrived.size(), MSG_WAITALL),
              static_cast<ssize_t>(arrived.size()));
    send("b", 2); // there is space now, and the first send waits for it
    ASSERT_EQ(r().submit(), 1);
    while (arrived.size() < much.size() + 1) {
        std::vector<char> part(1 << 16);
        const ssize_t n = ::recv(pair.b, part.data(), part.size(), MSG_DONTWAIT);
        if (n > 0) {
            arrived.append(part.data(), static_cast<std::size_t>(n));
        } else {
            ASSERT_TRUE(n < 0 && errno == EAGAIN);
            r().wait(1ms);
        }
    }
    EXPECT_EQ(results(r(), 2), (outcomes{{1, 4 << 20}, {2, 1}}));
    if (emulated()) { // io_uring lets requests of different chains overtake each other
        EXPECT_EQ(arrived.back(), 'b');
    }
}

TEST_P(BothBackendsPlain, ADrainHoldsAPlainSend) {
    receive(1);
    queue(r(), prep::nop(), 2, sqe_flag::io_drain);
    send("late", 3);
    ASSERT_EQ(r().submit(), 3);
    EXPECT_TRUE(is_quiet(r(), 5ms));
    EXPECT_EQ(received(), "");
    ASSERT_EQ(::send(pair.b, "go", 2, 0), 2);
    for (std::uint64_t i = 1; i <= 3; ++i) {
        EXPECT_EQ(next(r()).user_data, i);
    }
    EXPECT_EQ(received(), "late");
}

TEST_P(BothBackendsPlain, APlainSendCountsForTimeoutsWithACount) {
    const timespec far{3600, 0};
    queue(r(), prep::timeout(&far, 2), 1);
    ASSERT_EQ(r().submit(), 1);
    send("a", 2);
    send("b", 3);
    ASSERT_EQ(r().submit(), 2);
    EXPECT_EQ(results(r(), 3), (outcomes{{1, 0}, {2, 1}, {3, 1}}));
}

TEST_P(BothBackendsPlain, BadDescriptorsAndMemory) {
    queue(r(), prep::send(-1, "x", 1, 0), 1);
    queue(r(), prep::recv(-1, buffer.data(), 1, 0), 2);
    queue(r(), prep::send(pair.a, reinterpret_cast<const char*>(8), 4, 0), 3);
    ASSERT_EQ(r().submit(), 3);
    EXPECT_EQ(results(r(), 3), (outcomes{{1, -EBADF}, {2, -EBADF}, {3, -EFAULT}}));
}

TEST_P(BothBackendsPlain, ANumberThatIsReusedByAPipeIsNoSocket) {
    pipe_pair p;
    ASSERT_EQ(::dup2(p.out, pair.a), static_cast<int>(pair.a));
    send("x", 1);
    ASSERT_EQ(r().submit(), 1);
    EXPECT_EQ(results(r(), 1), (outcomes{{1, -ENOTSOCK}}));
}

} // namespace
} // namespace uring_test
