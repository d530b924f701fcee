// Start many tasks and gather their results in order.
#include <coil/coil.hpp>

#include <cstdio>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

task<int> square(int n) {
    co_await sleep_for(1ms * (10 - n)); // the last one finishes first
    co_return n* n;
}

task<> co_main() {
    std::vector<task<int>> tasks;
    for (int n = 1; n <= 5; ++n) {
        tasks.push_back(square(n));
    }
    // The first exception cancels the others and is rethrown here.
    for (int n : co_await when_all(std::move(tasks))) {
        std::printf("%d\n", n);
    }
}

int main() { coil::run(co_main()); }
