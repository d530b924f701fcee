// The floor under every timer here: a thread that does nothing but sleep to the next multiple of
// 100 µs. Dense timers cannot be served with less CPU than its wake-ups cost, nor more exactly than
// they come.

#include "sleepers.hpp"

namespace {

constexpr std::chrono::nanoseconds step = std::chrono::microseconds(100);

timespec to_timespec(sleepers::clock::time_point t) {
    const auto ns = t.time_since_epoch().count();
    return {ns / 1'000'000'000, ns % 1'000'000'000};
}

} // namespace

int main() {
    // As long as the sleepers take on the average: ten times 50 ms, and what the last need more.
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
