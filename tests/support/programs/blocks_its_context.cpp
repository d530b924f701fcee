// Three coroutines become ready at the same time, every 20 ms, and one of them blocks the thread
// for 3 ms. Runs until the standard input ends. For tests of tools that watch a program.

#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;

task<> blocks_for_three_ms() {
    std::this_thread::sleep_for(3ms);
    co_return;
}

task<> works(bool blocks) {
    for (auto at = std::chrono::steady_clock::now();; at += 20ms) {
        co_await io::nop();
        co_await sleep_until(at);
        if (blocks) {
            co_await blocks_for_three_ms();
        }
    }
}

task<> waits_for_the_end(io_context& ctx) {
    char c = 0;
    while (co_await io::read(0, mutable_buffer(&c, 1)) > 0) {
    }
    ctx.stop();
}

int main() {
    io_context ctx;
    ctx.co_spawn(works(false));
    ctx.co_spawn(works(true));
    ctx.co_spawn(works(false));
    ctx.co_spawn(waits_for_the_end(ctx));
    std::puts("ready");
    std::fflush(stdout);
    ctx.run();
}
