// The floor of every timer here: a thread that only sleeps until each multiple of 100 µs. Dense
// timers cannot use less CPU than its wake-ups, nor be more precise.

#include "sleepers.hpp"

namespace {

constexpr std::chrono::nanoseconds step = std::chrono::microseconds(100);

timespec to_timespec(sleepers::clock::time_point t) {
    const auto ns = t.time_since_epoch().count();
    return {ns / 1'000'000'000, ns % 1'000'000'000};
}

} // namespace

int main() {
    // About as long as the sleepers take: ten times 50 ms on average, and more for the last ones.
    constexpr auto length = std::chrono::milliseconds(830);
    sleepers::options o;
    o.count = length / step;
    o.rounds = 1;
    sleepers::workload work{o};
    work.begin();
    auto due = sleepers::clock::now();
    for (unsigned i = 0; i < o.count; ++i) {
        due += step;
        const timespec until = to_timespec(due);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
        work.woke(due);
    }
    return work.report("bare ticks");
}
