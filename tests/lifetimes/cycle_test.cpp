// Destructors on several threads that wait for each other: each leaves a scope in the middle of a
// turn and waits for a task on the context of the next one, which has run there and is suspended.

#include "lifetimes/support.hpp"

#include <coil/sim/world.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

using namespace lifetime_test;

namespace {

/// Contexts with a thread each, whose coroutines meet in the middle of a turn.
class ring_of_contexts {
public:
    explicit ring_of_contexts(std::size_t n) : ring_of_contexts(n, n) {}
    ring_of_contexts(std::size_t n, std::size_t tasks)
        : contexts(n), running(static_cast<std::ptrdiff_t>(tasks)),
          in_mid_run(static_cast<std::ptrdiff_t>(n)) {}

    io_context& next_after(std::size_t i) { return contexts[(i + 1) % contexts.size()]; }

    /// Waits until the tasks of all contexts have started and suspended. Then blocks its thread
    /// until all contexts have come this far: no turn can end before its scope is left.
    task<> meet() {
        co_await running.wait();
        co_await yield(); // lets what these tasks have started begin
        in_mid_run.arrive_and_wait();
    }

    void run() {
        std::vector<std::jthread> threads;
        for (io_context& each : contexts) {
            threads.emplace_back([&each] { each.run(); });
        }
    }

    std::deque<io_context> contexts;
    std::atomic<int> alive = 0;
    coil::latch running;
    std::latch in_mid_run;
};

using suspension = std::function<task<>(ring_of_contexts&, std::size_t)>;

task<> stays(ring_of_contexts& ring, std::size_t home, const suspension& suspend) {
    const counted local(ring.alive);
    ring.running.count_down();
    co_await suspend(ring, home);
}

task<> waits_for(io_context& where, task<> work, ring_of_contexts& ring) {
    const counted local(ring.alive);
    co_await on(where, std::move(work));
}

task<> leaves(ring_of_contexts& ring, std::size_t home, const suspension& suspend) {
    const counted local(ring.alive);
    scope children;
    children.spawn(waits_for(ring.next_after(home), stays(ring, home, suspend), ring));
    co_await ring.meet();
}

void all_leave(std::size_t contexts, const suspension& suspend) {
    ring_of_contexts ring(contexts);
    for (std::size_t i = 0; i < contexts; ++i) {
        ring.contexts[i].co_spawn(leaves(ring, i, suspend));
    }
    ring.run();
    EXPECT_EQ(ring.alive, 0);
}

task<> sleeps(ring_of_contexts& ring, std::size_t) {
    const counted local(ring.alive);
    co_await sleep_for(1h);
}

ISOLATED_TEST(Cycle, G5_TwoDestructorsWaitForEachOther) {
    for (int i = 0; i < 20; ++i) {
        all_leave(2, &sleeps);
    }
}

ISOLATED_TEST(Cycle, G5_ThreeDestructorsWaitForEachOther) {
    for (int i = 0; i < 20; ++i) {
        all_leave(3, &sleeps);
    }
}

ISOLATED_TEST(Cycle, G5_EightDestructorsWaitForEachOther) { all_leave(8, &sleeps); }

ISOLATED_TEST(Cycle, G5_WhateverTheTasksWaitFor) {
    coil::event never;
    coil::channel<int> empty(1);
    const std::vector<suspension> all{
        [](ring_of_contexts&, std::size_t) -> task<> { co_await sleep_for(1h); },
        [&never](ring_of_contexts&, std::size_t) -> task<> { co_await never.wait(); },
        [&empty](ring_of_contexts&, std::size_t) -> task<> {
            static_cast<void>(co_await empty.recv());
        },
        [](ring_of_contexts& ring, std::size_t home) -> task<> { // back on the first context
            co_await on(ring.contexts[home], sleeps(ring, home));
        },
        [](ring_of_contexts& ring, std::size_t home) -> task<> {
            scope children;
            children.spawn(sleeps(ring, home));
            children.spawn(sleeps(ring, home));
            co_await children.join();
        },
        [](ring_of_contexts& ring, std::size_t home) -> task<> {
            co_await when_all(sleeps(ring, home), sleeps(ring, home));
        },
        [](ring_of_contexts& ring, std::size_t home) -> task<> { // a scope that it does not join
            scope children;
            children.spawn(sleeps(ring, home));
            co_await sleep_for(1h);
        },
    };
    for (const suspension& each : all) {
        all_leave(2, each);
    }
}

/// The task that one destructor waits for is itself the one that leaves the other scope: it cannot
/// be destroyed while it runs. `outer` runs the task that leaves the scope further out.
void a_task_leaves_inside_another(const std::function<task<>(task<>)>& outer) {
    ring_of_contexts ring(2);
    const suspension sleep = &sleeps;
    const auto in_the_middle = [&]() -> task<> {
        ring.running.count_down();
        co_await leaves(ring, 1, sleep);
    };
    const auto first = [&]() -> task<> {
        scope children;
        children.spawn(waits_for(ring.contexts[1], in_the_middle(), ring));
        co_await ring.meet();
    };
    ring.contexts[0].co_spawn(outer(first()));
    const auto waits = [&]() -> task<> { co_await ring.running.wait(); };
    ring.contexts[1].co_spawn(waits()); // keeps it running until in_the_middle() has arrived
    ring.run();
    EXPECT_EQ(ring.alive, 0);
}

ISOLATED_TEST(Cycle, G5_ATaskThatRunsIsNotDestroyedInItsOwnDestructor) {
    a_task_leaves_inside_another([](task<> first) { return first; });
}

/// Nothing shows that the task which leaves the scope on the first context is not below the task
/// that is blocked there. But the request for the task on the second context shows that the scope
/// which that one leaves is below the first.
ISOLATED_TEST(Cycle, G5_ATaskIsRequestedAfterItHasBegunToLeaveAScope) {
    for (int i = 0; i < 20; ++i) {
        a_task_leaves_inside_another([](task<> first) -> task<> {
            const auto on_heap = std::make_unique<scope>();
            on_heap->spawn(std::move(first));
            co_await on_heap->join();
        });
    }
}

/// One destructor of the cycle releases the task that the other one waits for. The task cannot be
/// destroyed yet: it waits for a thread that continues only when the first destructor has returned.
ISOLATED_TEST(Cycle, G5_AReleasedTaskRemainsPartOfTheCycleUntilItIsDestroyed) {
    for (int i = 0; i < 20; ++i) {
        ring_of_contexts ring(2);
        looper_executor looper;
        std::binary_semaphore first_has_left{0};
        const auto keeps_its_thread = [&]() -> task<> {
            first_has_left.acquire();
            co_return;
        };
        const suspension waits_for_the_thread = [&](ring_of_contexts&, std::size_t) -> task<> {
            co_await on(looper, keeps_its_thread());
        };
        const suspension sleep = &sleeps;
        const auto first = [&]() -> task<> {
            {
                scope children;
                children.spawn(waits_for(ring.contexts[1], stays(ring, 0, sleep), ring));
                co_await ring.meet();
            }
            first_has_left.release();
        };
        ring.contexts[0].co_spawn(first());
        ring.contexts[1].co_spawn(leaves(ring, 1, waits_for_the_thread));
        ring.run();
        EXPECT_EQ(ring.alive, 0);
    }
}

/// Two tasks of the first context are released. The destruction of one of them leaves the other
/// one's scope, and waits there: the owner of that scope must not be destroyed meanwhile.
ISOLATED_TEST(Cycle, G5_AReleasedTaskIsNotDestroyedWhileItsScopeIs) {
    for (const bool owner_first : {false, true}) {
        ring_of_contexts ring(2, 4);
        std::optional<scope>* others_scope = nullptr;
        bool leaving = false;
        bool too_early = false;
        const suspension sleep = &sleeps;
        const suspension owns = [&](ring_of_contexts&, std::size_t) -> task<> {
            std::optional<scope> children(std::in_place);
            const at_end check([&] {
                others_scope = nullptr;
                too_early = too_early || leaving;
            });
            others_scope = &children;
            children->spawn(waits_for(ring.contexts[1], stays(ring, 0, sleep), ring));
            co_await sleep_for(1h);
        };
        const suspension leaves_the_others = [&](ring_of_contexts&, std::size_t) -> task<> {
            const at_end leave([&] {
                if (others_scope != nullptr) {
                    leaving = true;
                    others_scope->reset();
                    leaving = false;
                }
            });
            co_await sleep_for(1h);
        };
        const auto second = [&]() -> task<> {
            scope children;
            for (const bool owner : {owner_first, !owner_first}) {
                children.spawn(waits_for(ring.contexts[0],
                                         stays(ring, 1, owner ? owns : leaves_the_others), ring));
            }
            co_await ring.meet();
        };
        ring.contexts[0].co_spawn(leaves(ring, 0, sleep));
        ring.contexts[1].co_spawn(second());
        ring.run();
        EXPECT_EQ(ring.alive, 0);
        EXPECT_FALSE(too_early);
    }
}

/// The owner of a scope on the heap is unknown. It suffices that one destructor of the cycle can be
/// ended.
ISOLATED_TEST(Cycle, G5_AScopeOnTheHeapAndALocalOne) {
    ring_of_contexts ring(2);
    const suspension sleep = &sleeps;
    const auto resets = [&]() -> task<> {
        const auto children = std::make_unique<std::optional<scope>>(std::in_place);
        (*children)->spawn(waits_for(ring.contexts[1], stays(ring, 0, sleep), ring));
        co_await ring.meet();
        children->reset();
    };
    ring.contexts[0].co_spawn(resets());
    ring.contexts[1].co_spawn(leaves(ring, 1, sleep));
    ring.run();
    EXPECT_EQ(ring.alive, 0);
}

/// The first destructor waits for a task on the second context, whose thread is in a destructor
/// that waits for the third one. That is not a cycle, so the task is destroyed after the scope was
/// left.
ISOLATED_TEST(Cycle, G5_ATaskIsNotDestroyedInTheMiddleOfATurnWithoutACycle) {
    ring_of_contexts ring(2);
    io_context third;
    std::binary_semaphore begun{0};
    std::binary_semaphore third_may_go_on{0};
    std::atomic<bool> second_has_left = false;
    bool too_early = false;
    const suspension checks = [&](ring_of_contexts&, std::size_t) -> task<> {
        const at_end check([&] { too_early = !second_has_left; });
        co_await sleep_for(1h);
    };
    const auto second = [&]() -> task<> {
        {
            scope children;
            children.spawn(waits_for(third, sleeps_for_ever(ring.alive, begun), ring));
            co_await ring.meet();
        }
        second_has_left = true;
    };
    const auto keeps_its_thread = [&]() -> task<> {
        while (!begun.try_acquire()) { // the task of the second context begins here
            co_await yield();
        }
        ring.running.count_down();
        third_may_go_on.acquire();
    };
    ring.contexts[0].co_spawn(leaves(ring, 0, checks));
    ring.contexts[1].co_spawn(second());
    third.co_spawn(keeps_its_thread());
    std::jthread thread([&] { third.run(); });
    std::jthread later([&] {
        ring.in_mid_run.wait();
        std::this_thread::sleep_for(100ms); // a premature destruction would happen meanwhile
        third_may_go_on.release();
    });
    ring.run();
    EXPECT_EQ(ring.alive, 0);
    EXPECT_FALSE(too_early);
}

struct simulated_pair {
    std::atomic<int> alive = 0;
    int running = 0;
    bool leave = false;
};

task<> stays(simulated_pair& pair) {
    const counted local(pair.alive);
    ++pair.running;
    co_await sleep_for(1h);
}

task<> waits_for(io_context& other, simulated_pair& pair) {
    const counted local(pair.alive);
    co_await on(other, stays(pair));
}

/// A turn resumes what is ready before it takes the inbox, so the second context leaves its scope
/// before it sees the request of the first one.
task<> leaves(io_context& other, simulated_pair& pair) {
    const counted local(pair.alive);
    scope children;
    children.spawn(waits_for(other, pair));
    while (!pair.leave) {
        co_await yield();
        pair.leave = pair.leave || pair.running == 2;
    }
}

TEST(Cycle, G5_InTheSimulator) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        simulated_pair pair;
        sim::world w(seed);
        auto& host = w.host("host");
        io_context& a = host.make_context({});
        io_context& b = host.make_context({});
        a.co_spawn(leaves(b, pair));
        b.co_spawn(leaves(a, pair));
        w.run_for(1ms);
        EXPECT_EQ(pair.running, 2) << "seed " << seed;
        EXPECT_EQ(pair.alive, 0) << "seed " << seed;
    }
}

} // namespace
