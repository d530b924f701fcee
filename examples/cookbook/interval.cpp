// Do something at fixed intervals, without drift.
#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>

using namespace coil;
using namespace std::chrono_literals;

task<> every(std::chrono::milliseconds interval, int times) {
    auto next = std::chrono::steady_clock::now();
    for (int i = 1; i <= times; ++i) {
        next += interval; // from the schedule, not from the current time
        if (co_await sleep_until(next) < 0) {
            co_return; // asked to stop
        }
        std::printf("tick %d\n", i);
    }
}

int main() { coil::run(every(5ms, 3)); }
