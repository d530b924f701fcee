// Chains that are cancelled, time out or are destroyed at each stage.

#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::contains;
using coil_test::door_backend;
using coil_test::manual;
using coil_test::pipe_pair;
using coil_test::sqe;

namespace {

class LinkCancel : public ::testing::Test {
protected:
    std::array<pipe_pair, 3> pipes_;
};

using pipes = std::array<pipe_pair, 3>;

/// Reads one byte of each pipe, one after the other.
task<int> reads_three(const pipes& p, std::string& got) {
    got = "...";
    co_return co_await (io::read(p[0].in, {&got[0], 1}) && io::read(p[1].in, {&got[1], 1}) &&
                        io::read(p[2].in, {&got[2], 1}));
}

TEST_F(LinkCancel, G3_CancelledAtEachStage) {
    auto main = [](const pipes& p, int stage) -> task<> {
        std::string got;
        auto h = coil::spawn(reads_three(p, got));
        co_await yield();
        for (std::size_t i = 0; i < static_cast<std::size_t>(stage); ++i) {
            p[i].put("x");
            while (got[i] != 'x') {
                co_await sleep_for(1ms);
            }
        }
        EXPECT_FALSE(h.done());
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
        EXPECT_EQ(got, std::string(static_cast<std::size_t>(stage), 'x') +
                           std::string(3 - static_cast<std::size_t>(stage), '.'));
    };
    for (int stage = 0; stage < 3; ++stage) {
        coil::run(main(pipes_, stage));
    }
}

TEST_F(LinkCancel, G3_CancelledBeforeItStartsAndAfterItEnded) {
    auto main = [](const pipes& p) -> task<> {
        std::string got;
        auto early = coil::spawn(reads_three(p, got));
        early.cancel();
        EXPECT_EQ(co_await early, -ECANCELED);
        for (const auto& each : p) {
            each.put("y");
        }
        auto late = coil::spawn(reads_three(p, got));
        while (!late.done()) {
            co_await yield();
        }
        late.cancel();
        EXPECT_EQ(co_await late, 1);
        EXPECT_EQ(got, "yyy");
    };
    coil::run(main(pipes_));
}

TEST_F(LinkCancel, G3_AChainThatMovesOnWhileItIsCancelled) {
    // When the cancellation is requested, the entry in flight has just completed and the next is
    // about to start: the kernel finds neither, and the request must be repeated.
    auto guard = std::make_shared<door_backend::guard>();
    int asked = 0;
    guard->before_enter = [&](door_backend& k, const std::vector<sqe>& entries, unsigned) {
        if (contains(entries, uring::opcode::async_cancel) && asked++ == 0) {
            pipes_[0].put("x");
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto main = [](const pipes& p) -> task<int> {
        std::string got;
        auto h = coil::spawn(reads_three(p, got));
        co_await sleep_for(1ms);
        h.cancel();
        const int n = co_await h;
        EXPECT_EQ(got, "x..");
        co_return n;
    };
    EXPECT_EQ(coil_test::run_on(ctx, main(pipes_)), -ECANCELED);
    EXPECT_GE(asked, 1);
}

TEST_F(LinkCancel, G9_CancelledByAnotherThreadAtAnyTime) {
    io_context ctx;
    auto alive = []() -> task<> { co_await sleep_for(24h); };
    [[maybe_unused]] auto keep = ctx.spawn(alive());
    ctx.start();
    for (int round = 0; round < coil_test::rounds(300, 10'000); ++round) {
        std::string got;
        auto h = ctx.spawn(reads_three(pipes_, got));
        const auto feed = static_cast<std::size_t>(round % 4);
        for (std::size_t i = 0; i < feed; ++i) {
            pipes_[i].put("x");
        }
        h.cancel();
        const int result = h.get();
        // What was not read is still in the pipe.
        for (std::size_t i = 0; i < feed; ++i) {
            char c;
            if (got[i] != 'x') {
                ASSERT_EQ(::read(pipes_[i].in, &c, 1), 1) << round;
            }
        }
        ASSERT_EQ(result, got == "xxx" ? 1 : -ECANCELED) << round;
    }
    ctx.stop();
    ctx.join();
}

TEST_F(LinkCancel, G2_DestroyedAtEachStage_NothingHappensAfterwards) {
    auto chain = [](const pipes& p, std::string& got) -> manual {
        co_await (io::read(p[0].in, {&got[0], 1}) && io::read(p[1].in, {&got[1], 1}) &&
                  io::write(p[2].out, "late"));
    };
    auto main = [](auto f, const pipes& p, int stage) -> task<> {
        std::string got = "..";
        {
            manual victim = f(p, got);
            victim.start();
            co_await yield();
            for (std::size_t i = 0; i < static_cast<std::size_t>(stage); ++i) {
                p[i].put("x");
                co_await sleep_for(1ms);
            }
            victim.destroy();
        }
        const std::string before = got;
        for (std::size_t i = static_cast<std::size_t>(stage); i < 2; ++i) {
            p[i].put("y");
        }
        co_await sleep_for(2ms);
        EXPECT_EQ(got, before);
        char buf[8];
        ::fcntl(p[2].in, F_SETFL, O_NONBLOCK);
        EXPECT_EQ(::read(p[2].in, buf, sizeof buf), -1); // the write never happened
        for (std::size_t i = static_cast<std::size_t>(stage); i < 2; ++i) {
            EXPECT_EQ(::read(p[i].in, buf, sizeof buf), 1);
        }
    };
    for (int stage = 0; stage < 2; ++stage) {
        coil::run(main(chain, pipes_, stage));
    }
}

TEST_F(LinkCancel, G4_DestroyedWithDescriptorsInTheMiddle) {
    auto chain = [](const pipes& p) -> manual {
        char c;
        co_await (io::openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC) &&
                  io::read(p[0].in, {&c, 1}) &&
                  io::openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC));
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f, const pipes& p) -> task<> {
        const manual victim = f(p);
        victim.start();
        co_await sleep_for(1ms);
    };
    coil::run(main(chain, pipes_));
}

TEST_F(LinkCancel, G5_ShutdownWithAHundredChainsInFlight) {
    io_context ctx(16);
    std::vector<std::string> got(100);
    for (auto& each : got) {
        ctx.co_spawn([](const pipes& p, std::string& g) -> task<> {
            co_await reads_three(p, g);
            ADD_FAILURE() << "the coroutine was resumed";
        }(pipes_, each));
    }
    auto stops = [](io_context& c) -> task<> {
        co_await sleep_for(2ms);
        c.stop();
    };
    ctx.co_spawn(stops(ctx));
    ctx.run();
}

} // namespace
