// A sequence whose elements are awaited one by one.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;
using namespace std::chrono_literals;

async_generator<int> readings(int count) {
    for (int i = 1; i <= count; ++i) {
        co_await sleep_for(1ms); // anything that can be awaited
        co_yield i* i;
    }
}

task<> co_main() {
    auto values = readings(3);
    while (auto value = co_await values.next()) {
        std::printf("%d\n", *value);
    }
}

int main() { coil::run(co_main()); }
