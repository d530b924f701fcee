#include "support.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

// Builders of prep_core.hpp: readiness, time, cancellation, messages, futexes, children; and links.

namespace uring_test {
namespace {

using namespace std::chrono_literals;
using PrepCore = with_io_uring;
using clock = std::chrono::steady_clock;

static_assert(prep::nop().opcode == 0 && prep::nop().fd == -1 && prep::nop().flags == 0);
static_assert(prep::cancel(7).addr == 7 && prep::cancel(7).cancel_flags == 0);
static_assert(prep::poll_remove(9).addr == 9);

timespec milliseconds(int n) { return {n / 1000, (n % 1000) * 1'000'000LL}; }

TEST_F(PrepCore, NopLeavesUnusedBytesZero) {
    const sqe s = prep::nop();
    std::array<unsigned char, sizeof s> bytes{};
    std::memcpy(bytes.data(), &s, sizeof s);
    for (std::size_t i = 8; i < bytes.size(); ++i) {
        EXPECT_EQ(bytes[i], 0) << i;
    }
}

TEST_F(PrepCore, NopReturnsTheGivenResult) {
    ring r{8};
    const int got = run(r, prep::nop_result(1234));
    if (got == 0 || got == -EINVAL) {
        GTEST_SKIP() << "this kernel's nop does not support a result";
    }
    EXPECT_EQ(got, 1234);
    EXPECT_EQ(run(r, prep::nop_result(-EXDEV)), -EXDEV);
}

// ---- readiness

TEST_F(PrepCore, PollAddReportsTheEventsThatPollReports) {
    ring r{8};
    pipe_pair p;
    EXPECT_EQ(run(r, prep::poll_add(p.out, POLLOUT)), POLLOUT);
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(run(r, prep::poll_add(p.in, POLLIN | POLLPRI)), POLLIN);
    p.out.reset();
    EXPECT_EQ(run(r, prep::poll_add(p.in, POLLIN)), POLLIN | POLLHUP);
    EXPECT_EQ(run(r, prep::poll_add(-1, POLLIN)), -EBADF);
}

TEST_F(PrepCore, PollMultishotReportsUntilItIsRemoved) {
    ring r{8};
    const descriptor event{::eventfd(0, EFD_CLOEXEC)};
    queue(r, prep::poll_multishot(event, POLLIN), 1);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(::eventfd_write(event, 1), 0);
        const cqe c = next(r);
        EXPECT_EQ(c.user_data, 1U);
        EXPECT_EQ(c.res, POLLIN);
        EXPECT_TRUE(c.flags & cqe_flag::more);
    }
    queue(r, prep::poll_remove(1), 2);
    int removed = 1;
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        if (c.user_data == 2) {
            removed = c.res;
        } else {
            EXPECT_EQ(c.res, -ECANCELED);
        }
    }
    EXPECT_EQ(removed, 0);
    EXPECT_EQ(run(r, prep::poll_remove(1)), -ENOENT);
}

TEST_F(PrepCore, PollUpdateChangesEventsAndUserData) {
    ring r{8};
    pipe_pair p;
    queue(r, prep::poll_add(p.out, POLLPRI), 1); // never occurs
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(r.wait(5ms), -ETIME);
    queue(r,
          prep::poll_update(1, POLLOUT, 77, poll_flag::update_events | poll_flag::update_user_data),
          2);
    bool updated = false;
    bool fired = false;
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        if (c.user_data == 2) {
            EXPECT_EQ(c.res, 0);
            updated = true;
        } else {
            EXPECT_EQ(c.user_data, 77U);
            EXPECT_EQ(c.res, POLLOUT);
            fired = true;
        }
    }
    EXPECT_TRUE(updated && fired);
}

TEST_F(PrepCore, EpollCtlAndEpollWaitDoWhatTheCallsDo) {
    ring r{8};
    COIL_NEEDS(r, epoll_ctl);
    const descriptor epoll{::epoll_create1(EPOLL_CLOEXEC)};
    pipe_pair p;
    ::epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 42;
    EXPECT_EQ(run(r, prep::epoll_ctl(epoll, EPOLL_CTL_ADD, p.in, &event)), 0);
    EXPECT_EQ(run(r, prep::epoll_ctl(epoll, EPOLL_CTL_ADD, p.in, &event)), -EEXIST);
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    std::array<::epoll_event, 4> got{};
    ASSERT_EQ(::epoll_wait(epoll, got.data(), 4, 0), 1);
    EXPECT_EQ(std::uint64_t{got[0].data.u64}, 42U); // the struct is packed
    COIL_NEEDS(r, epoll_wait);
    got = {};
    EXPECT_EQ(run(r, prep::epoll_wait(epoll, got.data(), 4)), 1);
    EXPECT_EQ(std::uint64_t{got[0].data.u64}, 42U); // the struct is packed
    EXPECT_EQ(std::uint32_t{got[0].events}, EPOLLIN);
}

// ---- time

TEST_F(PrepCore, ATimeoutExpiresAfterItsTime) {
    ring r{8};
    const timespec ts = milliseconds(20);
    const auto start = clock::now();
    EXPECT_EQ(run(r, prep::timeout(&ts)), -ETIME);
    EXPECT_GE(clock::now() - start, 20ms);
    EXPECT_LT(clock::now() - start, 5s);
}

TEST_F(PrepCore, ATimeoutMayBeAPointInTime) {
    ring r{8};
    const auto at = clock::now() + 20ms;
    const auto since = at.time_since_epoch();
    const timespec ts{std::chrono::duration_cast<std::chrono::seconds>(since).count(),
                      (since % 1s).count()};
    EXPECT_EQ(run(r, prep::timeout(&ts, 0, timeout_flag::abs)), -ETIME);
    EXPECT_GE(clock::now(), at);
    EXPECT_LT(clock::now(), at + 5s);
}

TEST_F(PrepCore, ATimeoutWithACountEndsWithTheCount) {
    ring r{8};
    const timespec ts = milliseconds(60'000);
    queue(r, prep::timeout(&ts, 2), 1);
    queue(r, prep::nop(), 2);
    queue(r, prep::nop(), 3);
    bool ended = false;
    for (int i = 0; i < 3; ++i) {
        const cqe c = next(r);
        EXPECT_EQ(c.res, 0);
        ended |= c.user_data == 1;
    }
    EXPECT_TRUE(ended);
}

TEST_F(PrepCore, ATimeoutCanBeChangedAndRemoved) {
    ring r{8};
    const timespec never = milliseconds(60'000);
    const timespec soon = milliseconds(10);
    queue(r, prep::timeout(&never), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(run(r, prep::timeout_update(1, &soon)), 0);
    EXPECT_EQ(next(r).res, -ETIME);
    queue(r, prep::timeout(&never), 2);
    queue(r, prep::timeout_remove(2), 3);
    std::array<int, 4> result{};
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        result.at(c.user_data) = c.res;
    }
    EXPECT_EQ(result[2], -ECANCELED);
    EXPECT_EQ(result[3], 0);
    EXPECT_EQ(run(r, prep::timeout_remove(2)), -ENOENT);
}

TEST_F(PrepCore, AMultishotTimeoutTicks) {
    ring r{8};
    const timespec ts = milliseconds(5);
    const auto start = clock::now();
    queue(r, prep::timeout_multishot(&ts, 3), 1);
    for (int i = 0; i < 3; ++i) {
        const cqe c = next(r);
        if (c.res == -EINVAL) {
            GTEST_SKIP() << "this kernel has no multishot timeout";
        }
        EXPECT_EQ(c.res, -ETIME);
        EXPECT_EQ((c.flags & cqe_flag::more) != 0, i < 2);
    }
    EXPECT_GE(clock::now() - start, 15ms);
}

TEST_F(PrepCore, ALinkTimeoutCancelsTheEntryBeforeIt) {
    ring r{8};
    pipe_pair p;
    char byte = 0;
    const timespec ts = milliseconds(20);
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1, sqe_flag::io_link);
    queue(r, prep::link_timeout(&ts), 2);
    const auto start = clock::now();
    std::array<int, 3> result{};
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        result.at(c.user_data) = c.res;
    }
    EXPECT_GE(clock::now() - start, 20ms);
    EXPECT_EQ(result[1], -ECANCELED);
    EXPECT_EQ(result[2], -ETIME);

    // The read completes before its timeout.
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1, sqe_flag::io_link);
    queue(r, prep::link_timeout(&ts), 2);
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        result.at(c.user_data) = c.res;
    }
    EXPECT_EQ(result[1], 1);
    EXPECT_EQ(result[2], -ECANCELED);
}

// ---- links

TEST_F(PrepCore, G13_LinkedEntriesRunOneAfterTheOther) {
    ring r{8};
    pipe_pair p;
    char buf[4] = {};
    // The write is first in the chain although its entry was acquired last.
    sqe* second = r.acquire();
    sqe* first = r.acquire();
    *second = prep::read(p.in, buf, 3, prep::current_position);
    second->user_data = 2;
    *first = prep::write(p.out, "abc", 3, prep::current_position);
    first->user_data = 1;
    first->flags = sqe_flag::io_link;
    r.commit(first);
    r.commit(second);
    ASSERT_EQ(r.submit_and_wait(2), 2);
    cqe c = next(r);
    EXPECT_EQ(c.user_data, 1U);
    EXPECT_EQ(c.res, 3);
    c = next(r);
    EXPECT_EQ(c.user_data, 2U);
    EXPECT_EQ(c.res, 3);
    EXPECT_STREQ(buf, "abc");
}

TEST_F(PrepCore, AFailureBreaksALinkAndNotAHardLink) {
    ring r{8};
    char byte = 0;
    for (const std::uint8_t flag : {sqe_flag::io_link, sqe_flag::io_hardlink}) {
        queue(r, prep::read(-1, &byte, 1, 0), 0, flag);
        queue(r, prep::nop(), 1, flag);
        queue(r, prep::nop(), 2);
        std::array<int, 3> result{};
        for (int i = 0; i < 3; ++i) {
            const cqe c = next(r);
            result.at(c.user_data) = c.res;
        }
        EXPECT_EQ(result[0], -EBADF);
        EXPECT_EQ(result[1], flag == sqe_flag::io_link ? -ECANCELED : 0);
        EXPECT_EQ(result[2], flag == sqe_flag::io_link ? -ECANCELED : 0);
    }
}

TEST_F(PrepCore, SuccessCanBeSilent) {
    ring r{8};
    queue(r, prep::nop(), 1, sqe_flag::cqe_skip_success);
    queue(r, prep::nop(), 2);
    EXPECT_EQ(next(r).user_data, 2U);
    char byte = 0;
    queue(r, prep::read(-1, &byte, 1, 0), 3, sqe_flag::cqe_skip_success);
    EXPECT_EQ(next(r).res, -EBADF);
}

// ---- cancellation

struct pending_reads {
    explicit pending_reads(ring& on) : r(on) {
        for (std::size_t i = 0; i < 3; ++i) {
            queue(r, prep::read(p.in, &bytes[i], 1, prep::current_position), 10 + i);
        }
        EXPECT_EQ(r.submit(), 3);
    }
    /// The number of reads that end with -ECANCELED, and the canceller's result.
    std::pair<int, int> cancel(const sqe& entry) {
        queue(r, entry, 1);
        int report = 0;
        int cancelled = 0;
        bool reported = false;
        while (!reported || r.wait(20ms) == 0) {
            const cqe c = next(r);
            if (c.user_data == 1) {
                report = c.res;
                reported = true;
            } else {
                EXPECT_EQ(c.res, -ECANCELED);
                ++cancelled;
            }
        }
        return {cancelled, report};
    }
    ring& r;
    pipe_pair p;
    std::array<char, 3> bytes{};
};

TEST_F(PrepCore, CancelEndsTheRequestWithThatUserData) {
    ring r{8};
    pending_reads reads{r};
    EXPECT_EQ(reads.cancel(prep::cancel(11)), std::make_pair(1, 0));
    EXPECT_EQ(reads.cancel(prep::cancel(11)), std::make_pair(0, -ENOENT));
    EXPECT_EQ(reads.cancel(prep::cancel(10, cancel_flag::all)), std::make_pair(1, 1));
    EXPECT_EQ(reads.cancel(prep::cancel_any()), std::make_pair(1, 1));
}

TEST_F(PrepCore, CancelFindsRequestsByDescriptorAndByKind) {
    ring r{8};
    pending_reads reads{r};
    EXPECT_EQ(reads.cancel(prep::cancel_fd(reads.p.out, cancel_flag::all)), std::make_pair(0, 0));
    EXPECT_EQ(reads.cancel(prep::cancel_fd(reads.p.in)), std::make_pair(1, 0));
    EXPECT_EQ(reads.cancel(prep::cancel_fd(reads.p.in, cancel_flag::all)), std::make_pair(2, 2));
    pending_reads more{r};
    const auto by_kind = more.cancel(prep::cancel_op(opcode::read, cancel_flag::all));
    if (by_kind.second == -EINVAL) {
        more.cancel(prep::cancel_any());
        GTEST_SKIP() << "this kernel does not support cancellation by opcode";
    }
    EXPECT_EQ(by_kind, std::make_pair(3, 3));
}

TEST_F(PrepCore, CancelAnyEndsEveryRequest) {
    ring r{8};
    pending_reads reads{r};
    EXPECT_EQ(reads.cancel(prep::cancel_any()), std::make_pair(3, 3));
}

// ---- other rings

TEST_F(PrepCore, MsgRingPostsToAnotherRing) {
    ring source{8};
    ring target{8};
    COIL_NEEDS(source, msg_ring);
    EXPECT_EQ(run(source, prep::msg_ring(target.native_handle(), 17, 0xfeedfacecafebeefULL)), 0);
    const cqe c = next(target);
    EXPECT_EQ(c.user_data, 0xfeedfacecafebeefULL);
    EXPECT_EQ(c.res, 17);
    EXPECT_EQ(c.flags, 0U);
    EXPECT_EQ(run(source, prep::msg_ring_flags(target.native_handle(), 18, 5, 0xab)), 0);
    EXPECT_EQ(next(target).flags, 0xabU);
    EXPECT_EQ(run(source, prep::msg_ring(0, 0, 0)), -EBADFD); // not a ring
}

TEST_F(PrepCore, MsgRingFdSendsADirectDescriptor) {
    COIL_SKIP_ON_EPOLL("messages carry no files");
    ring source{8};
    ring target{8};
    COIL_NEEDS(source, msg_ring);
    pipe_pair p;
    int table[2] = {-1, p.out};
    ASSERT_EQ(source.get_backend().do_register(register_op::files, table, 2), 0);
    int empty[4] = {-1, -1, -1, -1};
    ASSERT_EQ(target.get_backend().do_register(register_op::files, empty, 4), 0);
    EXPECT_EQ(run(source, prep::msg_ring_fd(target.native_handle(), 1, 3, 99)), 0);
    EXPECT_EQ(next(target).user_data, 99U);
    EXPECT_EQ(run(target, prep::write(3, "x", 1, prep::current_position), sqe_flag::fixed_file), 1);
    char byte = 0;
    EXPECT_EQ(::read(p.in, &byte, 1), 1);
    EXPECT_EQ(run(source, prep::msg_ring_fd(target.native_handle(), 1, file_index_alloc, 98)), 0);
    EXPECT_EQ(next(target).res, 0); // the chosen slot
}

// ---- futexes and children

TEST_F(PrepCore, FutexWaitSeesAWake) {
    ring r{8};
    COIL_NEEDS(r, futex_wait);
    std::atomic<std::uint32_t> word{1};
    EXPECT_EQ(run(r, prep::futex_wait(&word, 2)), -EAGAIN);
    queue(r, prep::futex_wait(&word, 1), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(r.wait(5ms), -ETIME);
    std::thread waker{[&] {
        word = 2;
        ring own{8};
        EXPECT_EQ(run(own, prep::futex_wake(&word, 10)), 1);
        EXPECT_EQ(run(own, prep::futex_wake(&word, 10)), 0);
    }};
    EXPECT_EQ(next(r).res, 0);
    waker.join();
}

TEST_F(PrepCore, FutexWaitAndWakeMatchByMask) {
    ring r{8};
    COIL_NEEDS(r, futex_wait);
    std::uint32_t word = 1;
    queue(r, prep::futex_wait(&word, 1, 0x2), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(run(r, prep::futex_wake(&word, 1, 0x1)), 0);
    queue(r, prep::futex_wake(&word, 1, 0x2), 2);
    std::array<int, 3> result{-1, -1, -1};
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        result.at(c.user_data) = c.res;
    }
    EXPECT_EQ(result[1], 0);
    EXPECT_EQ(result[2], 1);
}

TEST_F(PrepCore, FutexWaitvReportsWhichWord) {
    ring r{8};
    COIL_NEEDS(r, futex_waitv);
    std::array<std::uint32_t, 3> words{};
    std::array<futex_waiter, 3> waiters{};
    for (std::size_t i = 0; i < 3; ++i) {
        waiters.at(i) = {0, prep::detail::address(&words.at(i)), futex_flag::size_u32, 0};
    }
    queue(r, prep::futex_waitv(waiters.data(), 3), 1);
    ASSERT_EQ(r.submit(), 1);
    queue(r, prep::futex_wake(&words[2], 1), 2);
    std::array<int, 3> result{-1, -1, -1};
    for (int i = 0; i < 2; ++i) {
        const cqe c = next(r);
        result.at(c.user_data) = c.res;
    }
    EXPECT_EQ(result[1], 2);
    EXPECT_EQ(result[2], 1);
}

TEST_F(PrepCore, WaitidReapsAChild) {
    ring r{8};
    COIL_NEEDS(r, waitid);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::_exit(42);
    }
    ::siginfo_t info{};
    EXPECT_EQ(run(r, prep::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED)), 0);
    EXPECT_EQ(info.si_pid, child);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    EXPECT_EQ(info.si_status, 42);
    EXPECT_EQ(run(r, prep::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED)), -ECHILD);
}

} // namespace
} // namespace uring_test
