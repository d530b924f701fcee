#include "support/run.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

using namespace coil;
using namespace std::chrono_literals;

namespace {

task<int> answer_after(std::chrono::microseconds pause) {
    co_await sleep_for(pause);
    co_return 42;
}

/// Sleeps and wakes all the time, so that the context also wakes up by itself while another thread
/// is about to wake it.
task<> restless() {
    while ((co_await sleep_for(1us)).has_value()) {
    }
}

task<> stop_when_answered(io_context& other, std::chrono::microseconds pause) {
    co_spawn(restless());
    EXPECT_EQ(co_await other.spawn(answer_after(pause)), 42);
    this_context().stop();
}

/// The thread that delivered the answer may be between posting it and waking the context when the
/// context, which is awake already, runs to its end and is destroyed. For the sanitizers.
TEST(Wake, G9_AContextMayBeDestroyedWhileItIsBeingWoken) {
    io_context other;
    other.co_spawn([]() -> task<> { co_await sleep_for(1h); }());
    other.start();
    for (int round = 0; round < coil_test::rounds(500, 20000); ++round) {
        const auto context = std::make_unique<io_context>(8);
        context->co_spawn(stop_when_answered(other, std::chrono::microseconds(round % 200)));
        context->run();
    }
    other.stop();
    other.join();
}

} // namespace
