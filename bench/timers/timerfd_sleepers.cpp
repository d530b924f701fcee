// The sleepers without a runtime: state machines, a heap of deadlines, and a timerfd(2) that is set
// to the first of them, in the way of libraries that set a timer for each deadline.

#include "sleepers.hpp"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <queue>
#include <vector>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

struct sleeper {
    sleepers::clock::time_point due;
    unsigned index;
    unsigned round;

    friend bool operator>(const sleeper& a, const sleeper& b) { return a.due > b.due; }
};

using heap = std::priority_queue<sleeper, std::vector<sleeper>, std::greater<>>;

[[noreturn]] void fail(const char* call) {
    std::perror(call);
    std::exit(1);
}

void fall_asleep(sleepers::workload& work, heap& asleep, unsigned index, unsigned round) {
    work.falls_asleep();
    asleep.push({sleepers::clock::now() + work.delay(index, round), index, round});
}

void wake_the_due(sleepers::workload& work, heap& asleep) {
    while (!asleep.empty() && asleep.top().due <= sleepers::clock::now()) {
        const sleeper woken = asleep.top();
        asleep.pop();
        work.woke(woken.due);
        if (woken.round + 1 < work.rounds()) {
            fall_asleep(work, asleep, woken.index, woken.round + 1);
        }
    }
}

void wait_until(int timer, int epoll, sleepers::clock::time_point due) {
    const auto ns = due.time_since_epoch().count();
    itimerspec at{};
    at.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, nullptr) != 0) {
        fail("timerfd_settime");
    }
    epoll_event event{};
    std::uint64_t expirations = 0;
    if (epoll_wait(epoll, &event, 1, -1) != 1 ||
        read(timer, &expirations, sizeof expirations) != sizeof expirations) {
        fail("timerfd");
    }
}

} // namespace

int main(int argc, char** argv) {
    sleepers::workload work{sleepers::parse_options(argc, argv)};
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    if (timer < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) != 0) {
        fail("timerfd_create or epoll_create1");
    }
    heap asleep;
    work.begin();
    for (unsigned i = 0; i < work.count(); ++i) {
        fall_asleep(work, asleep, i, 0);
    }
    if (work.settings().memory) {
        work.sample_memory();
    }
    while (!asleep.empty()) {
        wait_until(timer, epoll, asleep.top().due);
        wake_the_due(work, asleep);
    }
    return work.report("timerfd");
}
