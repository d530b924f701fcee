// Limit a rate without reading a clock: each permit is released when its window has passed.
#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>
#include <memory>

using namespace coil;
using namespace std::chrono_literals;

struct rate_limit {
    std::chrono::nanoseconds window;
    std::shared_ptr<counting_semaphore<>> permits; // one for each call within a window

    /// Waits until one more call may begin within the current `window`.
    task<> acquire() {
        co_await permits->acquire();
        co_spawn(give_back(*this)); // gets a copy, which may outlive this object
    }
    static task<> give_back(rate_limit to) {
        co_await sleep_for(to.window);
        to.permits->release();
    }
};

task<> make_calls(const sim::world& w) {
    const auto start = w.now();
    rate_limit limit{1h, std::make_shared<counting_semaphore<>>(5)};
    for (int i = 0; i < 25; ++i) {
        co_await limit.acquire();
    }
    std::printf("%d hours\n", static_cast<int>((w.now() - start) / 1h));
}

int main() {
    sim::world w(1);
    w.host("client").co_spawn(make_calls(w));
    w.run();
}
