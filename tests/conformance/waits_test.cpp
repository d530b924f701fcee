// Waiting for events other than data, on every backend: epoll, futexes, children, other rings.

#include "conformance/support.hpp"

#include <coil/uring/epoll_backend.hpp>

#include <array>
#include <atomic>
#include <csignal>

#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace conformance {

namespace {

class Waits : public Conformance {};
COIL_ON_ALL_BACKENDS(Waits);

task<> epoll_sets() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    const ends q = co_await piped();
    ::epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 1;
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_ADD, p.a, &event), 0);
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_ADD, p.a, &event), -EEXIST);
    event.data.u64 = 2;
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_ADD, q.a, &event), 0);
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_ADD, -1, &event), -EBADF);
    std::array<::epoll_event, 4> events{};
    co_await gives(io::epoll_wait(set, events, 2), 0, "none");
    auto waiting = coil::eager(io::epoll_wait(set, events));
    co_await coil::yield();
    co_await gives(io::write(q.b, "x"), 1);
    const int one = co_await waiting;
    EXPECT_EQ(one, 1);
    const std::uint64_t source = events[0].data.u64; // the struct is packed
    EXPECT_EQ(source, 2U);
    co_await gives(io::write(p.b, "x"), 1);
    co_await gives(io::epoll_wait(set, events), 2, "what is ready stays ready");
    co_await gives(io::epoll_wait(set, {events.data(), 1}), 1, "as many as there is room for");
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_DEL, p.a, nullptr), 0);
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_DEL, q.a, nullptr), 0);
    co_await gives(coil::timeout(io::epoll_wait(set, events), 2ms), -ETIMEDOUT);
    co_await gives(io::epoll_wait(p.a, events), -EINVAL, "a pipe is not an epoll set");
    co_await closed(p);
    co_await closed(q);
    co_await gives(io::close(set), 0);
}
TEST_P(Waits, EpollSets) { run(epoll_sets()); }

task<> futex_words() {
    // Not private_, and the process has had a second thread: see coil/io/futex.hpp.
    std::array<std::uint32_t, 3> words{};
    std::array<coil::uring::futex_waiter, 3> waiters{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        waiters.at(i).uaddr = reinterpret_cast<std::uintptr_t>(&words.at(i));
        waiters.at(i).flags = coil::uring::futex_flag::size_u32;
    }
    auto waiting = coil::eager(io::futex_waitv(waiters));
    co_await coil::yield();
    co_await gives(io::futex_wake(&words[2], 1), 1);
    const int woken = co_await waiting;
    EXPECT_EQ(woken, 2); // the index of the word that was woken
    words[1] = 7;
    co_await gives(io::futex_waitv(waiters), -EAGAIN, "one differs");
    waiters[1].val = 7;
    co_await gives(coil::timeout(io::futex_waitv(waiters), 2ms), -ETIMEDOUT);
    co_await gives(coil::timeout(io::futex_waitv(waiters), 2ms) && io::nop(), -ETIMEDOUT);
    co_await gives(io::futex_wake(&words[2], 1), 0, "no waiter is left");
    co_await gives(io::futex_waitv({waiters.data(), 0}), -EINVAL);
}
TEST_P(Waits, FutexWords) { run(futex_words()); }

task<> one_futex() {
    std::uint32_t word = 0;
    auto first = coil::eager(io::futex_wait(&word, 0));
    auto second = coil::eager(io::futex_wait(&word, 0));
    co_await coil::yield();
    co_await gives(io::futex_wait(&word, 1), -EAGAIN);
    co_await gives(io::futex_wake(&word, 0), 0);
    co_await gives(io::futex_wake(&word, 5), 2);
    const int one = co_await first;
    const int two = co_await second;
    EXPECT_EQ(one, 0);
    EXPECT_EQ(two, 0);
    co_await gives(coil::timeout(io::futex_wait(&word, 0), 2ms), -ETIMEDOUT);
}
TEST_P(Waits, OneFutex) { run(one_futex()); }

/// A child that exits with `status` at the end of its standard input.
::pid_t child_behind(int gate, int other_end, int status) {
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::close(other_end);
        char byte = 0;
        while (::read(gate, &byte, 1) > 0) {
        }
        ::_exit(status);
    }
    return child;
}

task<> children() {
    ends gate = co_await piped();
    const ::pid_t child = child_behind(gate.a, gate.b, 7);
    const auto id = static_cast<::id_t>(child);
    ::siginfo_t info{};
    co_await gives(io::waitid(P_PID, id, &info, WEXITED | WNOHANG), 0);
    EXPECT_EQ(info.si_pid, 0); // not yet
    co_await gives(coil::timeout(io::waitid(P_PID, id, &info, WEXITED), 2ms), -ETIMEDOUT);
    co_await gives(coil::timeout(io::waitid(P_ALL, 0, &info, WEXITED), 2ms), -ETIMEDOUT);
    co_await gives(coil::timeout(io::waitid(P_PID, id, &info, WEXITED), 2ms) && io::nop(),
                   -ETIMEDOUT);
    ::kill(child, SIGSTOP);
    co_await gives(io::waitid(P_PID, id, &info, WSTOPPED), 0);
    EXPECT_EQ(info.si_code, CLD_STOPPED);
    ::kill(child, SIGCONT);
    auto waiting = coil::eager(io::waitid(P_PID, id, &info, WEXITED | WNOWAIT));
    co_await coil::yield();
    co_await gives(io::close(gate.b), 0);
    const int ended = co_await waiting;
    EXPECT_EQ(ended, 0);
    EXPECT_EQ(info.si_pid, child);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    EXPECT_EQ(info.si_status, 7);
    co_await gives(io::waitid(P_PID, id, nullptr, WEXITED), 0, "WNOWAIT left the child waitable");
    co_await gives(io::waitid(P_PID, id, nullptr, WEXITED), -ECHILD);
    co_await gives(io::waitid(P_PID, id, nullptr, 0), -EINVAL);
    co_await gives(io::close(gate.a), 0);
}
TEST_P(Waits, Children) { run(children()); }

task<> messages_to_no_ring() {
    co_await gives(io::msg_ring(-1, 0, 0), -EBADF);
    const ends p = co_await piped();
    co_await gives(io::msg_ring(p.a, 0, 0), -EBADFD, "a pipe is no ring");
    co_await closed(p);
    co_await gives(io::msg_ring(p.a, 0, 0), -EBADF, "closed");
    const int own = coil::detail::required_loop().ring().native_handle();
    co_await gives(io::msg_ring(own, 0, 0), -EBADF, "the ring of a context");
}
TEST_P(Waits, MessagesToNoRing) { run(messages_to_no_ring()); }

task<> ring_messages(coil::uring::ring& other) {
    co_await gives(io::msg_ring(other.native_handle(), 17, 42), 0);
}
TEST_P(Waits, MessagesToRings) {
    coil::uring::ring_options options;
    options.entries = 8;
    coil::uring::ring other(options, std::string_view(GetParam().name) == "epoll"
                                         ? coil::uring::make_epoll_backend()
                                         : coil::uring::make_linux_backend());
    run(ring_messages(other));
    ASSERT_EQ(other.wait(1s), 0);
    const coil::uring::cqe got = *other.peek();
    EXPECT_EQ(got.user_data, 42U);
    EXPECT_EQ(got.res, 17);
    other.advance();
}

} // namespace

} // namespace conformance
