// Retry with exponential back-off and jitter.
#include <coil/coil.hpp>

#include <cstdio>
#include <random>
#include <stdexcept>

using namespace coil;
using namespace std::chrono_literals;

template <class F>
auto retry(F make_attempt, int attempts) -> decltype(make_attempt()) {
    std::minstd_rand random(std::random_device{}());
    std::chrono::milliseconds pause = 1ms;
    for (int i = 1;; ++i, pause *= 2) {
        try {
            co_return co_await make_attempt();
        } catch (const std::exception& e) {
            if (i == attempts) {
                throw;
            }
            std::printf("attempt %d failed: %s\n", i, e.what());
        }
        std::uniform_real_distribution<> jitter(0.5, 1.0);
        const io_result slept = co_await sleep_for(pause * jitter(random));
        slept.value(); // throws if asked to stop
    }
}

task<int> flaky() {
    static int calls = 0;
    if (++calls < 3) {
        throw std::runtime_error("busy");
    }
    co_return calls;
}

task<> co_main() { std::printf("succeeded at call %d\n", co_await retry(flaky, 5)); }

int main() { coil::run(co_main()); }
