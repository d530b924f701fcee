// Cancelling n waiting members of any queue takes O(n) time.

#include "support.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace coil;
using namespace std::chrono_literals;

/// A linear algorithm takes some 0.1 s, also with sanitizers; a search for each member takes
/// minutes.
constexpr int members = 100'000;
constexpr auto limit = 20s;

task<> read_held_back(int fd) {
    char byte;
    EXPECT_EQ(co_await io::read(fd, {&byte, 1}), -ECANCELED);
}

task<> cancel_held_back(int fd) {
    scope s;
    for (int i = 0; i < members; ++i) {
        s.spawn(read_held_back(fd));
    }
    co_await yield();
    co_await yield();
    s.cancel();
    co_await s.join();
}

TEST(CancellationCost, G3_OperationsHeldBackByTheBoundLeaveTheirQueueInConstantTime) {
    const coil_test::pipe_pair p;
    io_context_options options;
    options.max_in_flight = 2;
    io_context ctx(options);
    const auto begin = std::chrono::steady_clock::now();
    ctx.co_spawn(cancel_held_back(p.in));
    ctx.run();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, limit);
}

task<> destroy_held_back(int fd, io_context& ctx) {
    scope s;
    for (int i = 0; i < members; ++i) {
        s.spawn(read_held_back(fd));
    }
    co_await yield();
    co_await yield();
    ctx.stop();
    co_await sleep_for(1h); // destroyed here, including the scope
}

TEST(CancellationCost, G5_AShutdownWithOperationsHeldBackIsLinear) {
    const coil_test::pipe_pair p;
    io_context_options options;
    options.max_in_flight = 2;
    io_context ctx(options);
    const auto begin = std::chrono::steady_clock::now();
    ctx.co_spawn(destroy_held_back(p.in, ctx));
    ctx.run();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, limit);
}

} // namespace
