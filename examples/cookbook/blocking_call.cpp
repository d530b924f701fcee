// Call a function that blocks, without blocking the other coroutines.
#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;

int slow_library_call(int n) {
    std::this_thread::sleep_for(20ms);
    return n + 1;
}

task<> tick(int& ticks) {
    while (co_await sleep_for(1ms) == 0) {
        ++ticks;
    }
}

task<> co_main() {
    int ticks = 0;
    auto ticker = spawn(tick(ticks));
    // Runs on a thread of a pool; this coroutine resumes here, with the result or the exception.
    const int n = co_await blocking([] { return slow_library_call(41); });
    ticker.cancel();
    co_await ticker;
    std::printf("%d, %s\n", n, ticks > 0 ? "and others ran" : "and nothing else ran");
}

int main() { coil::run(co_main()); }
