// Run many tasks, at most n at a time.
#include <coil/coil.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>

using namespace coil;
using namespace std::chrono_literals;

int now = 0, most = 0;

task<> request() {
    most = std::max(most, ++now);
    co_await sleep_for(1ms);
    --now;
}

task<> limited(counting_semaphore<>& permits) {
    co_await request();
    permits.release();
}

task<> co_main() {
    counting_semaphore<> permits(4);
    scope requests;
    for (int i = 0; i < 20; ++i) {
        co_await permits.acquire(); // before the task is made: there are never more than 4
        requests.spawn(limited(permits));
    }
    co_await requests.join();
    std::printf("at most %d at a time\n", most);
}

int main() { coil::run(co_main()); }
