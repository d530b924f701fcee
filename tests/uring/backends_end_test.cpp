// What io_uring and the epoll backend must agree on: cancelled waits for futexes and children,
// polls, results that cannot be stored, fsync of a range, and messages to rings.

#include "uring/backends.hpp"

#include <coil/uring/registered_files.hpp>

#include <atomic>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uring_test {
namespace {

struct BothBackendsEnd : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsEnd);

std::vector<std::pair<std::uint64_t, int>> in_order(ring& r, unsigned n) {
    std::vector<std::pair<std::uint64_t, int>> found;
    while (found.size() < n) {
        const cqe c = next(r);
        found.emplace_back(c.user_data, c.res);
    }
    return found;
}
using ordered = std::vector<std::pair<std::uint64_t, int>>;

/// A child process that waits to be killed.
struct child {
    child() : pid(::fork()) {
        if (pid == 0) {
            for (;;) {
                ::pause();
            }
        }
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    ::pid_t pid;
};

int cancel_now(ring& r, std::uint64_t user_data) {
    sync_cancel_reg reg{};
    reg.addr = user_data;
    reg.timeout = {-1, -1};
    return r.get_backend().do_register(register_op::sync_cancel, &reg, 1);
}

// ---- cancelling waits for a futex or a child

TEST_P(BothBackendsEnd, G3_ACancelledFutexWaitIsCounted) {
    ring r{small(), make()};
    COIL_NEEDS(r, futex_wait);
    std::uint32_t word = 0;
    for (int i = 0; i < 20; ++i) {
        queue(r, prep::futex_wait(&word, 0), 1);
        ASSERT_EQ(r.submit(), 1);
        queue(r, prep::cancel(1), 2);
        EXPECT_EQ(in_order(r, 2), (ordered{{2, 1}, {1, -ECANCELED}}));
    }
    queue(r, prep::cancel(1), 3);
    EXPECT_EQ(next(r).res, -ENOENT);
}

TEST_P(BothBackendsEnd, G3_ACancelledWaitForSeveralFutexesIsCounted) {
    ring r{small(), make()};
    COIL_NEEDS(r, futex_waitv);
    std::uint32_t words[2] = {};
    futex_waiter waiters[2] = {};
    for (int i = 0; i < 2; ++i) {
        waiters[i].uaddr = reinterpret_cast<std::uintptr_t>(words + i);
        waiters[i].flags = futex_flag::size_u32;
    }
    queue(r, prep::futex_waitv(waiters, 2), 1);
    queue(r, prep::futex_wait(words, 0), 2);
    ASSERT_EQ(r.submit(), 2);
    queue(r, prep::cancel(1), 3);
    EXPECT_EQ(in_order(r, 2), (ordered{{3, 1}, {1, -ECANCELED}}));
    queue(r, prep::cancel_any(), 4);
    EXPECT_EQ(in_order(r, 2), (ordered{{4, 1}, {2, -ECANCELED}}));
}

TEST_P(BothBackendsEnd, G3_ACancelledWaitForAChildIsCounted) {
    ring r{small(), make()};
    COIL_NEEDS(r, waitid);
    const child c;
    ::siginfo_t info{};
    // On the epoll backend, a wait for WEXITED alone polls a pidfd; the other one takes a thread.
    for (const int options : {WEXITED, WEXITED | WSTOPPED}) {
        queue(r, prep::waitid(P_PID, static_cast<::id_t>(c.pid), &info, options), 1);
        ASSERT_EQ(r.submit(), 1);
        queue(r, prep::cancel(1), 2);
        EXPECT_EQ(in_order(r, 2), (ordered{{2, 1}, {1, -ECANCELED}})) << options;
    }
}

TEST_P(BothBackendsEnd, G3_ALinkTimeoutThatEndsAFutexOrChildWaitCountsIt) {
    ring r{small(), make()};
    COIL_NEEDS(r, futex_wait);
    const child c;
    ::siginfo_t info{};
    std::uint32_t word = 0;
    const timespec soon{0, 3'000'000};
    queue(r, prep::futex_wait(&word, 0), 1, sqe_flag::io_link);
    queue(r, prep::link_timeout(&soon), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, 1}}));
    queue(r, prep::waitid(P_PID, static_cast<::id_t>(c.pid), &info, WEXITED), 3, sqe_flag::io_link);
    queue(r, prep::link_timeout(&soon), 4);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{3, -ECANCELED}, {4, 1}}));
}

TEST_P(BothBackendsEnd, G3_ASynchronousCancelEndsAFutexWait) {
    ring r{small(), make()};
    COIL_NEEDS(r, futex_wait);
    std::uint32_t word = 0;
    queue(r, prep::futex_wait(&word, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(cancel_now(r, 1), 1);
    EXPECT_EQ(next(r).res, -ECANCELED);
}

/// A wake-up races with a cancellation: a wait that was woken is not reported as cancelled.
TEST_P(BothBackendsEnd, G3_ACancelNeverTakesAWake) {
    ring r{small(), make()};
    COIL_NEEDS(r, futex_wait);
    for (int i = 0; i < 200; ++i) {
        std::uint32_t word = 0;
        queue(r, prep::futex_wait(&word, 0), 1);
        ASSERT_EQ(r.submit(), 1);
        std::atomic<bool> go{false};
        int woken = 0;
        std::thread waker([&] {
            while (!go.load()) {
            }
            woken = static_cast<int>(
                ::syscall(SYS_futex, &word, 1 /* FUTEX_WAKE */, 1, nullptr, nullptr, 0));
        });
        queue(r, prep::cancel(1), 2);
        go.store(true);
        std::map<std::uint64_t, int> found = results(r, 2);
        waker.join();
        EXPECT_EQ(found[1], woken == 1 ? 0 : -ECANCELED);
        EXPECT_EQ(found[2] == 1, woken == 0) << found[2];
    }
}

// ---- polls

TEST_P(BothBackendsEnd, G3_APollUpdateCompletesBeforeThePollThatItMakesReady) {
    ring r{small(), make()};
    const stream_pair s;
    queue(r, prep::poll_add(s.a, POLLIN), 1);
    ASSERT_EQ(r.submit(), 1);
    queue(r, prep::poll_update(1, POLLOUT), 2);
    EXPECT_EQ(in_order(r, 2), (ordered{{2, 0}, {1, POLLOUT}}));
    queue(r, prep::poll_multishot(s.a, POLLIN), 3);
    ASSERT_EQ(r.submit(), 1);
    sqe update = prep::poll_update(3, POLLOUT);
    update.len |= poll_flag::add_multi;
    queue(r, update, 4);
    EXPECT_EQ(in_order(r, 2), (ordered{{4, 0}, {3, POLLOUT}}));
    // With a new user_data, in a chain: the next entry is linked to the update, not to the poll.
    queue(r, prep::poll_add(s.a, POLLIN), 5);
    ASSERT_EQ(r.submit(), 1);
    queue(r,
          prep::poll_update(5, POLLOUT, 55, poll_flag::update_events | poll_flag::update_user_data),
          6, sqe_flag::io_link);
    queue(r, prep::nop(), 7);
    std::map<std::uint64_t, int> found = results(r, 3);
    EXPECT_EQ(found, (std::map<std::uint64_t, int>{{6, 0}, {7, 0}, {55, POLLOUT}}));
}

TEST_P(BothBackendsEnd, APollReportsTheEndOfTheOtherSideUnrequested) {
    ring r{small(), make()};
    const stream_pair s;
    queue(r, prep::poll_add(s.a, POLLPRI), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::shutdown(s.b, SHUT_WR), 0);
    EXPECT_EQ(next(r).res, POLLRDHUP);
    EXPECT_EQ(run(r, prep::poll_add(s.a, POLLIN)), POLLIN | POLLRDHUP);
    EXPECT_EQ(run(r, prep::poll_add(s.a, POLLOUT)), POLLOUT | POLLRDHUP);
}

TEST_P(BothBackendsEnd, APollWaitsForTheNormalAndThePriorityBandOfWrites) {
    ring r{small(), make()};
    for (const unsigned wanted : {unsigned{POLLWRNORM}, unsigned{POLLWRBAND}}) {
        const stream_pair s;
        std::vector<char> text(1U << 16);
        while (::send(s.a, text.data(), text.size(), MSG_DONTWAIT) > 0) {
        }
        queue(r, prep::poll_add(s.a, wanted), 1);
        ASSERT_EQ(r.submit(), 1);
        EXPECT_TRUE(is_quiet(r, 5ms));
        while (::recv(s.b, text.data(), text.size(), MSG_DONTWAIT) > 0) {
        }
        EXPECT_EQ(next(r).res, static_cast<int>(wanted));
    }
}

// ---- addresses

TEST_P(BothBackendsEnd, G6_AResultThatCannotBeStoredIsAnError) {
    ring r{small(), make()};
    constexpr std::size_t page = 4096;
    auto* const read_only =
        static_cast<int*>(::mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    auto* const nowhere =
        static_cast<int*>(::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int* const bad : {read_only, nowhere}) {
        if (r.supports(opcode::pipe)) {
            const int before = ::dup(0);
            ::close(before);
            EXPECT_EQ(run(r, prep::pipe(bad, O_CLOEXEC)), -EFAULT);
            const int after = ::dup(0);
            ::close(after);
            EXPECT_EQ(before, after) << "a pipe is left open";
        }
        if (!r.supports(opcode::waitid)) {
            continue;
        }
        for (const int options : {WEXITED, WEXITED | WSTOPPED}) {
            const ::pid_t pid = ::fork();
            if (pid == 0) {
                ::usleep(options == WEXITED ? 0 : 20'000);
                ::_exit(3);
            }
            EXPECT_EQ(run(r, prep::waitid(P_PID, static_cast<::id_t>(pid),
                                          reinterpret_cast<::siginfo_t*>(bad), options)),
                      -EFAULT);
            EXPECT_EQ(::waitpid(pid, nullptr, 0), -1); // the child has been waited for
        }
    }
    ::munmap(read_only, page);
    ::munmap(nowhere, page);
}

// ---- files

TEST_P(BothBackendsEnd, AnFsyncOfARangeIsAnFsync) {
    ring r{small(), make()};
    const pipe_pair p;
    const temporary_directory directory;
    const descriptor file{::open((directory / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    sqe sync = prep::fsync(p.out);
    EXPECT_EQ(run(r, sync), -EINVAL);
    sync.len = 1;
    EXPECT_EQ(run(r, sync), -EINVAL); // sync_file_range(2) would fail with ESPIPE
    sync.fd = file;
    EXPECT_EQ(run(r, sync), 0);
    sync.off = INT64_MAX;
    EXPECT_EQ(run(r, sync), 0);
    sync.off = ~std::uint64_t{4095};
    for (const unsigned length : {0U, 8192U}) {
        sync.len = length;
        EXPECT_EQ(run(r, sync), -EINVAL);
    }
}

TEST_P(BothBackendsEnd, AMessageGoesToTheRingOfTheSlotNotOfItsNumber) {
    ring r{small(), make()};
    ring other{small(), make()};
    registered_files table(r, 4096);
    const pipe_pair p;
    const int number = other.get_backend().native_handle();
    ASSERT_LT(number, 4096);
    int fd = p.in;
    ASSERT_EQ(run(r, prep::files_update(&fd, 1, static_cast<unsigned>(number))), 1);
    sqe message = prep::msg_ring(number, 5, 6);
    EXPECT_EQ(run(r, message), 0);
    EXPECT_EQ(next(other).user_data, 6U);
    message.flags |= sqe_flag::fixed_file;
    EXPECT_EQ(run(r, message), -EBADFD);
    EXPECT_TRUE(is_quiet(other, 5ms));
    message.fd = 4095;
    EXPECT_EQ(run(r, message), -EBADF);
    fd = number; // a table cannot hold a ring
    EXPECT_EQ(run(r, prep::files_update(&fd, 1, 0)), -EBADF);
    const descriptor duplicate{::dup(number)};
    EXPECT_EQ(run(r, prep::msg_ring(duplicate, 7, 8)), 0);
    EXPECT_EQ(next(other).user_data, 8U);
}

} // namespace
} // namespace uring_test
