// Tasks that take over scopes with children that are older than they are. The destructor of such a
// task waits for an older task, on a context whose thread destroys a younger one.

#include "lifetimes/support.hpp"

#include <coil/sim/world.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

using namespace lifetime_test;

namespace {

/// Two contexts. On each of them a task has taken over a scope on the heap, with a child that waits
/// for an older task on the other one.
struct crossing {
    std::atomic<int> alive = 0;
    std::atomic<int> sleeping = 0; // tasks that the scopes' children wait for
    std::atomic<int> taken = 0;
};

task<> sleeps(crossing& all) {
    const counted local(all.alive);
    ++all.sleeping;
    co_await sleep_for(1h);
}

task<> waits_for(io_context& where, task<> work, crossing& all) {
    const counted local(all.alive);
    co_await on(where, std::move(work));
}

task<> takes_over(std::unique_ptr<scope> children, crossing& all) {
    const counted local(all.alive);
    const std::unique_ptr<scope> mine = std::move(children); // ends here, not with the frame
    ++all.taken;
    co_await sleep_for(1h);
}

/// Runs on the context `there`, until the task that takes over the scope has begun on it.
task<> creates(io_context& other, std::unique_ptr<scope>& children, crossing& all) {
    children = std::make_unique<scope>();
    children->spawn(waits_for(other, sleeps(all), all));
    while (all.taken < 2) {
        co_await yield();
    }
}

task<> moves(io_context& there, std::unique_ptr<scope>& children, crossing& all) {
    const counted local(all.alive);
    while (all.sleeping < 2) {
        co_await yield();
    }
    co_await on(there, takes_over(std::move(children), all));
}

void start(std::array<io_context*, 2> contexts, std::array<std::unique_ptr<scope>, 2>& scopes,
           crossing& all) {
    for (std::size_t i = 0; i < 2; ++i) {
        contexts[i]->co_spawn(creates(*contexts[1 - i], scopes[i], all));
        contexts[1 - i]->co_spawn(moves(*contexts[i], scopes[i], all));
    }
}

ISOLATED_TEST(TakenOver, G5_AShutdownOfBothContexts) {
    for (int i = 0; i < 20; ++i) {
        runtime rt(2);
        crossing all;
        std::array<std::unique_ptr<scope>, 2> scopes;
        start({&rt.context(0), &rt.context(1)}, scopes, all);
        std::jthread stopper([&] {
            while (all.taken < 2) {
                std::this_thread::yield();
            }
            rt.stop();
        });
        rt.run();
        EXPECT_EQ(all.alive, 0);
    }
}

task<> leaves(std::array<io_context*, 2> contexts, std::array<std::unique_ptr<scope>, 2>& scopes,
              crossing& all) {
    scope children;
    for (std::size_t i = 0; i < 2; ++i) {
        contexts[i]->co_spawn(creates(*contexts[1 - i], scopes[i], all));
        children.spawn(waits_for(*contexts[1 - i], moves(*contexts[i], scopes[i], all), all));
    }
    while (all.taken < 2) {
        co_await yield();
    }
}

ISOLATED_TEST(TakenOver, G5_AScopeThatIsLeft) {
    for (int i = 0; i < 20; ++i) {
        runtime rt(3);
        crossing all;
        std::array<std::unique_ptr<scope>, 2> scopes;
        rt.context(2).co_spawn(leaves({&rt.context(0), &rt.context(1)}, scopes, all));
        rt.run();
        EXPECT_EQ(all.alive, 0);
    }
}

TEST(TakenOver, G5_InTheSimulator) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        crossing all;
        std::array<std::unique_ptr<scope>, 2> scopes;
        {
            sim::world w(seed);
            auto& host = w.host("host");
            std::array<io_context*, 3> contexts{};
            for (io_context*& each : contexts) {
                each = &host.make_context({});
            }
            if (seed % 2 == 0) {
                start({contexts[0], contexts[1]}, scopes, all);
            } else {
                contexts[2]->co_spawn(leaves({contexts[0], contexts[1]}, scopes, all));
            }
            w.run_for(10ms);
            EXPECT_EQ(all.taken, 2) << "seed " << seed;
        }
        EXPECT_EQ(all.alive, 0) << "seed " << seed;
    }
}

} // namespace
