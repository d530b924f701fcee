// Share a limit between tasks that are started in different places.
#include <coil/coil.hpp>

#include <algorithm>
#include <cstdio>

using namespace coil;
using namespace std::chrono_literals;

counting_semaphore<> connections{2};
int now = 0, most = 0;

task<> query(int number) {
    auto permit = co_await connections.acquire_guard(); // until the end of the block
    most = std::max(most, ++now);
    co_await sleep_for(1ms);
    --now;
    permit.release(); // or earlier
    co_await sleep_for(1ms * number);
}

task<> co_main() {
    scope all;
    for (int i = 0; i < 6; ++i) {
        all.spawn(query(i));
    }
    co_await when_all(all.join(), query(6));
    std::printf("at most %d at a time\n", most);
}

int main() { coil::run(co_main()); }
