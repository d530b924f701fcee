// Many remote children, nested or side by side: the cost of each must not depend on how many there
// are.

#include "lifetimes/small_stack.hpp"
#include "lifetimes/support.hpp"

#include <atomic>
#include <chrono>
#include <semaphore>

using namespace lifetime_test;

namespace {

constexpr int depth = 10'000;
constexpr int drop_depth = coil_test::sanitized ? 500 : 5'000;
constexpr int width = coil_test::sanitized ? 1'000 : 20'000;

/// A chain of on(), alternating between two contexts, with a task that sleeps at its end.
struct chain {
    io_context& here;
    io_context& there;
    std::atomic<int> alive = 0;
    std::binary_semaphore complete{0};

    task<> link(int below) {
        const counted local(alive);
        if (below == 0) {
            complete.release();
            co_await sleep_for(1h);
        } else {
            co_await on(below % 2 == 0 ? here : there, link(below - 1));
        }
    }
    /// Returns when the chain is complete. The context continues to run.
    task<> until_complete() {
        while (!complete.try_acquire()) {
            co_await sleep_for(1ms);
        }
    }
};

ISOLATED_TEST(RemoteDepth, G10_AStopPassesThroughNestedOn) {
    io_context there;
    there.start();
    auto main = [&]() -> task<> {
        chain links{this_context(), there};
        inplace_stop_source stop;
        auto all = spawn(links.link(depth), stop.get_token());
        co_await links.until_complete();
        stop.request_stop();
        co_await all;
        EXPECT_EQ(links.alive, 0);
    };
    on_small_stack([&] { coil::run(main()); });
}

ISOLATED_TEST(RemoteDepth, G5_AShutdownOfNestedOnIsLinear) {
    struct nested {
        inline_executor executor;
        std::atomic<int> alive = 0;

        static task<> link(nested& all, int below, io_context& context) {
            const counted local(all.alive);
            if (below == 0) {
                context.stop();
                co_await sleep_for(1h);
            } else {
                co_await on(all.executor, link(all, below - 1, context));
            }
        }
    };
    on_small_stack([] {
        constexpr int links = coil_test::sanitized ? 10'000 : 50'000; // quadratic: minutes
        nested all;
        io_context context;
        context.co_spawn(nested::link(all, links, context));
        const auto begin = std::chrono::steady_clock::now();
        context.run();
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
        EXPECT_EQ(all.alive, 0);
    });
}

ISOLATED_TEST(RemoteDepth, G5_NestedOnBelowAScopeThatIsLeft) {
    io_context there;
    there.start();
    auto main = [&]() -> task<> {
        chain links{this_context(), there};
        {
            scope children;
            children.spawn(links.link(drop_depth));
            co_await links.until_complete();
        }
        EXPECT_EQ(links.alive, 0);
    };
    coil::run(main());
}

ISOLATED_TEST(RemoteDepth, G5_ManyRemoteChildrenOfAScopeThatIsLeft) {
    io_context there;
    io_context further;
    there.start();
    further.start();
    std::atomic<int> alive = 0;
    std::atomic<int> begun = 0;
    auto leaf = [&]() -> task<> {
        const counted local(alive);
        ++begun;
        co_await sleep_for(1h);
    };
    auto middle = [&]() -> task<> {
        const counted local(alive);
        co_await on(further, leaf());
    };
    auto main = [&]() -> task<> {
        {
            scope children;
            for (int i = 0; i < width; ++i) {
                children.spawn(on(there, middle()));
            }
            while (begun < width) {
                co_await sleep_for(1ms);
            }
        }
        EXPECT_EQ(alive, 0);
    };
    coil::run(main());
}

} // namespace
