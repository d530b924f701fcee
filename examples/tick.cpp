// Prints a line every second, forever or N times:
//
//     tick 3
//
// It shows timers: with sleep_until the period does not depend on how long printing takes, and a
// waiting process uses no CPU time.

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <system_error>

using namespace coil;

namespace {

task<> tick(long count) {
    const auto start = std::chrono::steady_clock::now();
    for (long n = 1; n <= count; ++n) {
        const auto due = start + std::chrono::seconds(n);
        co_await sleep_until(due);
        const std::chrono::duration<double, std::micro> late =
            std::chrono::steady_clock::now() - due;
        std::printf("tick %ld (%.0f us late)\n", n, late.count());
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) try {
    long count = std::numeric_limits<long>::max();
    if (argc > 1) {
        const char* const end = argv[1] + std::strlen(argv[1]);
        const auto [rest, error] = std::from_chars(argv[1], end, count);
        if (argc > 2 || rest != end || error != std::errc() || count < 0) {
            std::fprintf(stderr, "usage: tick [N]\n");
            return 2;
        }
    }
    coil::run(tick(count));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "tick: %s\n", e.what());
    return 1;
}
