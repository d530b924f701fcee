// A background task that lives as long as its owner: a heartbeat during the work.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;
using namespace std::chrono_literals;

task<> heartbeat(int& beats) {
    while (co_await sleep_for(1ms) == 0) { // another result: asked to stop
        ++beats;
    }
}

task<int> work() {
    co_await sleep_for(20ms);
    co_return 42;
}

task<> co_main() {
    int beats = 0;
    scope background;
    background.spawn(heartbeat(beats));
    const int result = co_await work();
    background.cancel();
    co_await background.join(); // ends before `beats` is destroyed
    std::printf("%d, %s\n", result, beats > 0 ? "with a heartbeat" : "without one");
}

int main() { coil::run(co_main()); }
