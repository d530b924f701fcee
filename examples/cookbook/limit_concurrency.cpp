// Run many tasks, at most n at a time.
#include <coil/coil.hpp>

#include <algorithm>
#include <cstdio>
#include <ranges>

using namespace coil;
using namespace std::chrono_literals;

int now = 0, most = 0;

task<> request(int number) {
    most = std::max(most, ++now);
    co_await sleep_for(1ms * (1 + number % 3));
    --now;
}

task<> co_main() {
    // request() is called when one of the 4 places is free, so at most 4 tasks exist at a time.
    co_await for_each_concurrent(std::views::iota(0, 20), 4, request);
    std::printf("at most %d at a time\n", most);
}

int main() { coil::run(co_main()); }
