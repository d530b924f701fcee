// COUNT coroutines of one context concurrently call a function that blocks for MICROSECONDS, on a
// pool of THREADS, while a ticker ticks every millisecond. Prints one JSON object: the total time,
// the context's longest turn, and the lateness of the latest tick.

#include "../lib/usage.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using clock_type = std::chrono::steady_clock;

struct state {
    long left = 0;
    long calls = 0;
    clock_type::duration latest{};
};

coil::task<> calls(coil::blocking_pool& pool, std::chrono::microseconds length, state& s) {
    s.calls += co_await coil::blocking(pool, [length] {
        std::this_thread::sleep_for(length);
        return 1;
    });
    --s.left;
}

coil::task<> ticks(state& s) {
    while (s.left > 0) {
        const auto due = clock_type::now() + std::chrono::milliseconds(1);
        co_await coil::sleep_until(due);
        s.latest = std::max(s.latest, clock_type::now() - due);
    }
}

template <class Duration>
double milliseconds(Duration d) {
    return std::chrono::duration<double, std::milli>(d).count();
}

} // namespace

int main(int argc, char** argv) {
    const long count = argc == 4 ? std::atol(argv[1]) : 0;
    const long threads = argc == 4 ? std::atol(argv[2]) : 0;
    const long length = argc == 4 ? std::atol(argv[3]) : -1;
    if (count <= 0 || threads <= 0 || length < 0) {
        std::fprintf(stderr, "usage: %s COUNT THREADS MICROSECONDS\n", argv[0]);
        return 2;
    }
    coil::blocking_pool pool(threads);
    coil::io_context ctx;
    state s;
    s.left = count;
    for (long i = 0; i < count; ++i) {
        ctx.co_spawn(calls(pool, std::chrono::microseconds(length), s));
    }
    ctx.co_spawn(ticks(s));
    const auto begin = clock_type::now();
    ctx.run();
    const double took = milliseconds(clock_type::now() - begin);
    if (s.calls != count) {
        std::fprintf(stderr, "%ld of %ld calls were made\n", s.calls, count);
        return 1;
    }
    std::printf("{\"calls\": %ld, \"threads\": %zu, \"ms\": %.1f, \"cpu_ms\": %.1f, "
                "\"longest_turn_ms\": %.3f, \"latest_tick_ms\": %.3f}\n",
                s.calls, pool.metrics().threads_made, took, usage::cpu_seconds() * 1e3,
                milliseconds(ctx.metrics().longest_turn), milliseconds(s.latest));
    return 0;
}
