// Wait for an event, but not for ever.
#include <coil/coil.hpp>

#include <cstdio>
#include <system_error>

using namespace coil;
using namespace std::chrono_literals;

task<> wait_for(event& ready) { co_await ready.wait(); }

task<const char*> outcome(event& ready, std::chrono::milliseconds limit) {
    try {
        co_await timeout(wait_for(ready), limit);
        co_return "it happened";
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            throw; // asked to stop
        }
        co_return "too late";
    }
}

task<> co_main() {
    event ready;
    std::printf("%s\n", co_await outcome(ready, 10ms));
    ready.set();
    std::printf("%s\n", co_await outcome(ready, 10ms));
}

int main() { coil::run(co_main()); }
