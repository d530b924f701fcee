// A context may be destroyed as soon as run() has returned, whoever made it return: nobody who woke
// or stopped it touches it any more. ThreadSanitizer and AddressSanitizer look on.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <memory>
#include <optional>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Lifetime : public coil_test::no_descriptor_leak {};

task<> yields() {
    for (;;) {
        co_await yield();
    }
}
task<> sleeps() { co_await sleep_for(24h); }
task<int> at_once() { co_return 1; }
task<int> awaits(join_handle<int> h) { co_return co_await h; }

TEST_F(Lifetime, G9_DestroyedRightAfterAStopFromAnotherThread) {
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        auto ctx = std::make_unique<io_context>();
        ctx->co_spawn(round % 2 == 0 ? yields() : sleeps());
        std::thread stopper([context = ctx.get()] { context->stop(); });
        ctx->run();
        ctx.reset();
        stopper.join();
    }
}

TEST_F(Lifetime, G9_DestroyedRightAfterAnswersFromAnotherContext) {
    io_context worker;
    worker.co_spawn(sleeps());
    worker.start();
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        auto ctx = std::make_unique<io_context>(
            coil_test::with([](auto& o) { o.idle = idle_policy::park(); }));
        auto result = ctx->spawn(awaits(worker.spawn(at_once())));
        if (round % 2 == 0) {
            // Something else may wake it while the answer is under way.
            ctx->co_spawn([]() -> task<> { co_await sleep_for(20us); }());
        }
        ctx->run();
        ctx.reset();
        EXPECT_EQ(result.get(), 1);
    }
    worker.stop();
    worker.join();
}

TEST_F(Lifetime, G9_DestroyedRightAfterGetReturned) {
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        std::optional<join_handle<int>> handle;
        auto ctx = std::make_unique<io_context>();
        handle.emplace(ctx->spawn(at_once()));
        ctx->start();
        EXPECT_EQ(handle->get(), 1);
        handle.reset();
        ctx.reset();
    }
}

} // namespace
