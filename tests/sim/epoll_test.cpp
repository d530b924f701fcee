// Programs with epoll sets and with foreign_loop in worlds whose calls and turns are late, short or
// interrupted: no event is lost, and a seed gives the same run again.

#include "sim/support.hpp"

#include <coil/context/context_clock.hpp>
#include <coil/context/detail/perform.hpp>
#include <coil/context/sleep.hpp>
#include <coil/interop/foreign_loop.hpp>
#include <coil/io/epoll.hpp>
#include <coil/io/socket.hpp>

#include <array>
#include <cerrno>
#include <cstdint>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace sim_test {
namespace {

constexpr int writers = 4;
constexpr int bytes_of_each = 20;

task<> write_slowly(int fd) {
    for (int sent = 0; sent < bytes_of_each;) {
        const int r = co_await io::send(fd, "x", 0);
        sent += r > 0 ? r : 0;
        if (sent % 5 == 0) {
            co_await coil::sleep_for(1ms);
        }
    }
    co_await io::close(fd);
}

/// Reads until there is nothing; returns true at the end of the file.
task<bool> drain(int fd, int& total) {
    for (;;) {
        std::array<char, 3> buffer{};
        const int r = co_await io::recv(fd, buffer, MSG_DONTWAIT);
        if (r <= 0) {
            EXPECT_TRUE(r == 0 || r == -EAGAIN) << r;
            co_return r == 0;
        }
        total += r;
    }
}

/// Reads everything from several sockets through a set with the given trigger.
task<int> read_from_all(std::uint32_t trigger) {
    const int set = io::epoll_create1();
    for (int i = 0; i < writers; ++i) {
        int fds[2] = {-1, -1};
        const int made = coil::detail::perform(
            coil::uring::prep::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
        EXPECT_EQ(made, 0);
        ::epoll_event event{};
        event.events = EPOLLIN | trigger;
        event.data.fd = fds[0];
        const int added = co_await io::epoll_ctl(set, EPOLL_CTL_ADD, fds[0], &event);
        EXPECT_EQ(added, 0);
        coil::co_spawn(write_slowly(fds[1]));
    }
    int total = 0;
    for (int open = writers; open > 0;) {
        std::array<::epoll_event, 3> events{};
        const int found = co_await io::epoll_wait(set, events);
        for (int i = 0; i < found; ++i) {
            const int fd = events[static_cast<std::size_t>(i)].data.fd;
            if (co_await drain(fd, total)) {
                co_await io::close(fd);
                --open;
            } else if (trigger == EPOLLONESHOT) {
                ::epoll_event again{};
                again.events = EPOLLIN | trigger;
                again.data.fd = fd;
                const int changed = co_await io::epoll_ctl(set, EPOLL_CTL_MOD, fd, &again);
                EXPECT_EQ(changed, 0);
            }
        }
    }
    co_await io::close(set);
    co_return total;
}

task<> wait_for_ever() {
    static_cast<void>(co_await read_from_all(0));
    const int outer = io::epoll_create1();
    const int inner = io::epoll_create1();
    ::epoll_event event{};
    event.events = EPOLLIN;
    const int added = co_await io::epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event);
    EXPECT_EQ(added, 0);
    std::array<::epoll_event, 1> events{};
    co_await io::epoll_wait(outer, events);
}

sim::world_options with_late_calls() {
    sim::world_options options;
    options.faults = sim::fault_plan::timing();
    options.faults.short_transfer = 200;
    return options;
}

TEST(SimEpoll, NoEventIsLost) {
    EXPECT_TRUE(sim::for_each_seed(300, [](std::uint64_t seed) {
        std::uint64_t hashes[2] = {};
        for (std::uint64_t& hash : hashes) {
            sim::world w(seed, with_late_calls());
            const std::uint32_t trigger = seed % 3 == 0   ? 0U
                                          : seed % 3 == 1 ? EPOLLET
                                                          : EPOLLONESHOT;
            EXPECT_EQ(run_in(w, w.host("a"), read_from_all(trigger)), writers * bytes_of_each);
            EXPECT_TRUE(w.host("a").open_descriptors().empty());
            hash = w.trace_hash();
        }
        return hashes[0] == hashes[1];
    }));
}

TEST(SimEpoll, CrashWithASet) {
    sim::world w(1);
    sim::host& h = w.host("a");
    h.co_spawn(wait_for_ever());
    w.run_for(1s);
    EXPECT_EQ(h.open_descriptors().size(), 2U);
    h.crash();
    w.run();
    EXPECT_TRUE(h.open_descriptors().empty());
}

task<bool> watch_and_wait() {
    coil::foreign_loop loop;
    const auto begin = coil::context_clock::now();
    loop.set_deadline(begin + 1h);
    const auto woken = co_await loop.wait();
    co_return woken.expired&& coil::context_clock::now() - begin >= 1h;
}

TEST(SimEpoll, DeadlinesOfForeignLoopsAreInVirtualTime) {
    EXPECT_TRUE(sim::for_each_seed(50, [](std::uint64_t seed) {
        sim::world w(seed, with_late_calls());
        const bool expired = run_in(w, w.host("a"), watch_and_wait());
        return expired && w.host("a").open_descriptors().empty();
    }));
}

} // namespace
} // namespace sim_test
