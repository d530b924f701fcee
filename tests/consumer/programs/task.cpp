#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

coil::task<int> answer() {
    co_await coil::sleep_for(1ms);
    co_return 42;
}

coil::task<int> co_main() {
    const int got = co_await answer();
    std::printf("a task slept and answered %d\n", got);
    co_return got == 42 ? 0 : 1;
}

int main() { return coil::run(co_main()); }
