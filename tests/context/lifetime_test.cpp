// A context may be destroyed as soon as run() has returned, whatever made it return: a thread that
// woke or stopped it does not access it any more. Checked by ThreadSanitizer and AddressSanitizer.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Lifetime : public ::testing::Test {};

/// A context whose memory is overwritten directly after its destruction, so that the sanitizers see
/// a write that conflicts with late accesses of other threads. (For freed memory, ThreadSanitizer
/// checks only the beginning.)
class overwritten_context {
public:
    explicit overwritten_context(io_context_options options = {}) {
        context_ = std::construct_at(reinterpret_cast<io_context*>(memory_), std::move(options));
    }
    ~overwritten_context() {
        std::destroy_at(context_);
        std::memset(memory_, 0xdd, sizeof memory_);
    }
    overwritten_context(const overwritten_context&) = delete;
    io_context* operator->() const { return context_; }
    [[nodiscard]] io_context* get() const { return context_; }

private:
    alignas(io_context) std::byte memory_[sizeof(io_context)];
    io_context* context_;
};

task<> yields() {
    for (;;) {
        co_await yield();
    }
}
task<> sleeps() { co_await sleep_for(24h); }
task<int> at_once() { co_return 1; }
task<int> awaits(join_handle<int> h) { co_return co_await h; }

/// Frames of different sizes, so that they begin at odd and even multiples of 64 bytes.
template <std::size_t Bytes>
task<> has_a_context(bool& misaligned) {
    std::byte more[Bytes];
    std::memset(more, 0xdd, sizeof more);
    io_context local;
    const volatile std::uintptr_t address = reinterpret_cast<std::uintptr_t>(&local);
    misaligned = misaligned || address % alignof(io_context) != 0;
    local.co_spawn(yields());
    co_await yield();
    static_cast<void>(more[0]);
}

TEST_F(Lifetime, AContextMayBeALocalOfACoroutine) {
    bool misaligned = false;
    io_context ctx;
    for (int i = 0; i < 4; ++i) {
        ctx.co_spawn(has_a_context<64>(misaligned));
        ctx.co_spawn(has_a_context<128>(misaligned));
        ctx.co_spawn(has_a_context<192>(misaligned));
    }
    ctx.run();
    EXPECT_FALSE(misaligned);
}

TEST_F(Lifetime, G9_DestroyedRightAfterAStopFromAnotherThread) {
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        std::optional<overwritten_context> context(std::in_place);
        const overwritten_context& ctx = *context;
        ctx->co_spawn(round % 2 == 0 ? yields() : sleeps());
        std::thread stopper([c = ctx.get()] { c->stop(); });
        ctx->run();
        context.reset();
        stopper.join();
    }
}

TEST_F(Lifetime, G9_DestroyedRightAfterAnswersFromAnotherContext) {
    io_context worker;
    worker.co_spawn(sleeps());
    worker.start();
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        std::optional<overwritten_context> context(
            std::in_place, coil_test::with([](auto& o) { o.idle = idle_policy::park(); }));
        const overwritten_context& ctx = *context;
        auto result = ctx->spawn(awaits(worker.spawn(at_once())));
        if (round % 2 == 0) {
            // A timer may wake it before the answer does.
            ctx->co_spawn([]() -> task<> { co_await sleep_for(20us); }());
        }
        ctx->run();
        context.reset();
        EXPECT_EQ(result.get(), 1);
    }
    worker.stop();
    worker.join();
}

TEST_F(Lifetime, G9_DestroyedRightAfterGetReturned) {
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        std::optional<join_handle<int>> handle;
        std::optional<overwritten_context> context(std::in_place);
        const overwritten_context& ctx = *context;
        handle.emplace(ctx->spawn(at_once()));
        ctx->start();
        EXPECT_EQ(handle->get(), 1);
        handle.reset();
        context.reset();
    }
}

} // namespace
