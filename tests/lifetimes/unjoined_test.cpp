// Shutdowns of contexts whose tasks await each other in scopes that are not joined.

#include "lifetimes/support.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

using namespace lifetime_test;

namespace {

enum class scopes : std::uint8_t { local, on_the_heap, below_a_generator };

/// A chain of tasks, each of which is on the next context and in an unjoined scope of the task
/// before it.
struct chain {
    std::vector<io_context*> contexts;
    scopes where = scopes::local;
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};

    [[nodiscard]] io_context& at(std::size_t depth) const {
        return *contexts[depth % contexts.size()];
    }
    task<> link(std::size_t depth, std::size_t more) {
        const counted local(alive);
        if (more == 0) {
            co_await sleeps_for_ever(alive, begun);
        }
        std::unique_ptr<scope> heap;
        scope here;
        if (where == scopes::on_the_heap) {
            heap = std::make_unique<scope>();
        }
        (heap ? *heap : here).spawn(goes(depth + 1, more - 1));
        if (heap) {
            co_await shield(sleep_for(1h)); // it does not leave the scope by itself
        } else {
            co_await sleep_for(1h);
        }
    }
    task<> goes(std::size_t depth, std::size_t more) {
        const counted local(alive);
        co_await on(at(depth), where == scopes::below_a_generator ? generates(depth, more)
                                                                  : link(depth, more));
    }
    task<> generates(std::size_t depth, std::size_t more) {
        const counted local(alive);
        auto all = elements(depth, more);
        co_await all.next();
    }
    async_generator<int> elements(std::size_t depth, std::size_t more) {
        const counted local(alive);
        co_await link(depth, more);
        co_yield 1;
    }
};

/// The chain alternates between `b` and `a`. While `b` is blocked, `a` begins to shut down. It must
/// destroy only the lower of its two tasks; the upper one is in an unjoined scope as well.
void stop_while_the_other_is_busy(scopes where) {
    io_context a;
    io_context b;
    chain tasks{.contexts = {&b, &a}, .where = where};
    b.co_spawn(tasks.link(0, 4)); // b, a, b, a, b
    b.start();
    a.start();
    tasks.begun.acquire();
    std::binary_semaphore busy{0};
    std::binary_semaphore may_continue{0};
    b.post([&] {
        busy.release();
        may_continue.acquire();
    });
    busy.acquire();
    a.stop();
    std::this_thread::sleep_for(100ms);
    b.stop();
    may_continue.release();
    a.join();
    b.join();
    EXPECT_EQ(tasks.alive, 0);
}

void stop_at_once(std::size_t contexts, scopes where) {
    for (int i = 0; i < 30; ++i) {
        std::vector<std::unique_ptr<io_context>> all;
        chain one{.contexts = {}, .where = where};
        chain another{.contexts = {}, .where = where};
        for (std::size_t n = 0; n < contexts; ++n) {
            all.push_back(std::make_unique<io_context>());
            one.contexts.push_back(all.back().get());
        }
        another.contexts.assign(one.contexts.rbegin(), one.contexts.rend());
        for (chain* each : {&one, &another}) {
            each->at(0).co_spawn(each->link(0, 7));
        }
        for (const auto& each : all) {
            each->start();
        }
        one.begun.acquire();
        another.begun.acquire();
        {
            std::vector<std::jthread> stoppers;
            for (const auto& each : all) {
                stoppers.emplace_back([&each] { each->stop(); });
            }
        }
        for (const auto& each : all) {
            each->join();
        }
        EXPECT_EQ(one.alive + another.alive, 0);
    }
}

ISOLATED_TEST(Unjoined, G5_AShutdownHoldsBackAnAncestorOfATask) {
    stop_while_the_other_is_busy(scopes::local);
}

ISOLATED_TEST(Unjoined, G5_AShutdownHoldsBackAnAncestorOfATask_WithScopesOnTheHeap) {
    stop_while_the_other_is_busy(scopes::on_the_heap);
}

ISOLATED_TEST(Unjoined, G5_AShutdownHoldsBackAnAncestorOfATask_WithScopesBelowAGenerator) {
    stop_while_the_other_is_busy(scopes::below_a_generator);
}

ISOLATED_TEST(Unjoined, G5_TwoContextsAreStoppedAtOnce) { stop_at_once(2, scopes::local); }
ISOLATED_TEST(Unjoined, G5_FourContextsAreStoppedAtOnce) { stop_at_once(4, scopes::local); }
ISOLATED_TEST(Unjoined, G5_ContextsAreStoppedAtOnceWithScopesOnTheHeap) {
    stop_at_once(2, scopes::on_the_heap);
    stop_at_once(3, scopes::on_the_heap);
}
ISOLATED_TEST(Unjoined, G5_ContextsAreStoppedAtOnceWithScopesBelowGenerators) {
    stop_at_once(2, scopes::below_a_generator);
    stop_at_once(4, scopes::below_a_generator);
}

ISOLATED_TEST(Unjoined, G5_AShutdownOfManyTasksIsLinear) {
    constexpr std::size_t links = coil_test::sanitized ? 1'000 : 6'000; // quadratic: minutes
    io_context a;
    io_context b;
    chain tasks{.contexts = {&a, &b}};
    a.co_spawn(tasks.link(0, links));
    a.start();
    b.start();
    tasks.begun.acquire();
    const auto begin = std::chrono::steady_clock::now();
    a.stop();
    b.stop();
    a.join();
    b.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    EXPECT_EQ(tasks.alive, 0);
}

// A shutdown only asks a task that is awaited in a joined scope to stop. In a scope that is not
// joined the task is destroyed where it is suspended, whatever it does.

ISOLATED_TEST(Unjoined, G5_ARemoteChildsScopeHasATaskThatDoesNotStop) {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    io_context runs; // is not stopped before the others have ended
    runs.start();
    {
        io_context a;
        io_context b;
        auto ignores = [&]() -> task<> {
            const counted local(alive);
            begun.release();
            for (;;) {
                co_await shield(sleep_for(1ms));
            }
        };
        auto goes = [&]() -> task<> {
            const counted local(alive);
            co_await on(runs, ignores());
        };
        auto leaves = [&]() -> task<> {
            const counted local(alive);
            scope s;
            s.spawn(goes());
            co_await sleep_for(1h);
        };
        auto top = [&]() -> task<> {
            const counted local(alive);
            co_await on(b, leaves());
        };
        a.co_spawn(top());
        a.start();
        b.start();
        begun.acquire();
        b.stop();
        a.stop();
        a.join();
        b.join();
        EXPECT_EQ(alive, 0);
    }
}

// One context destroys a scope while it runs. Meanwhile the other context, on which the scope's
// child is, shuts down; a task in the child's own scope is on the first context.

ISOLATED_TEST(Unjoined, G5_AScopeIsLeftWhileTheOtherContextShutsDown) {
    for (int i = 0; i < 20; ++i) {
        io_context a;
        io_context b;
        chain tasks{.contexts = {&a, &b}};
        std::binary_semaphore leaving{0};
        auto top = [&]() -> task<> {
            const counted local(tasks.alive);
            {
                scope s;
                s.spawn(tasks.goes(1, 3)); // b, a, b, a
                while (!tasks.begun.try_acquire()) {
                    co_await sleep_for(1ms);
                }
                leaving.release();
                std::this_thread::sleep_for(i % 2 == 0 ? 0ms : 5ms);
            }
            co_await sleep_for(1h);
        };
        a.co_spawn(top());
        a.start();
        b.start();
        leaving.acquire();
        b.stop();
        b.join();
        a.stop();
        a.join();
        EXPECT_EQ(tasks.alive, 0);
    }
}

} // namespace
