// Trees of coroutines of any depth: built, asked to stop, destroyed, completed, on a stack that is
// too small for a call per level (guarantee G10).

#include "lifetimes/small_stack.hpp"
#include "lifetimes/support.hpp"

#include <array>
#include <atomic>
#include <coroutine>
#include <cstdlib>
#include <functional>
#include <semaphore>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace lifetime_test;

namespace {

// With a sanitizer each frame is a separate allocation with additional bookkeeping.
constexpr int depth = coil_test::sanitized ? 50'000 : 1'000'000;

// ---- async_task

/// Suspends its awaiter until the test opens it, which resumes the awaiter by a plain call.
struct door {
    std::coroutine_handle<> waiter;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiter = h; }
    void await_resume() const noexcept {}
};

using inline_task = async_task<int, inline_executor>;

struct links {
    static inline_task first(door& gate) {
        co_await gate;
        co_return 1;
    }
    static inline_task next(inline_task before) { co_return co_await std::move(before) + 1; }
    /// Lets two tasks of one layer await the same task of the layer before.
    static inline_task both(inline_task& a, inline_task& b) {
        co_return (co_await a + co_await b) % 1000;
    }
    static task<int> through(inline_task before) { co_return co_await std::move(before); }
    static inline_task next_by_task(inline_task before) {
        co_return co_await through(std::move(before)) + 1;
    }
};

ISOLATED_TEST(Depth, G10_AChainOfInlineAsyncTasksCompletes) {
    on_small_stack([] {
        door gate;
        inline_task last = links::first(gate);
        for (int i = 1; i < depth; ++i) {
            last = links::next(std::move(last));
        }
        gate.waiter.resume();
        ASSERT_TRUE(last.done()); // resuming the first task has completed all others
        EXPECT_EQ(last.get(), depth);
    });
}

ISOLATED_TEST(Depth, G10_AChainOfInlineAsyncTasksThatAwaitTasksCompletes) {
    on_small_stack([] {
        constexpr int shorter = depth / 4; // each level has three coroutines
        door gate;
        inline_task last = links::first(gate);
        for (int i = 1; i < shorter; ++i) {
            last = links::next_by_task(std::move(last));
        }
        gate.waiter.resume();
        ASSERT_TRUE(last.done());
        EXPECT_EQ(last.get(), shorter);
    });
}

ISOLATED_TEST(Depth, G10_AMeshOfInlineAsyncTasksCompletes) {
    on_small_stack([] {
        constexpr int layers = depth / 20;
        door gate;
        std::vector<inline_task> all;
        all.reserve(3 * layers); // keeps references to the elements valid
        all.push_back(links::first(gate));
        while (all.size() + 3 <= all.capacity()) {
            inline_task& before = all.back();
            all.push_back(links::both(before, before));
            all.push_back(links::both(before, before));
            all.push_back(links::both(all.end()[-1], all.end()[-2]));
        }
        gate.waiter.resume();
        for (inline_task& each : all) {
            ASSERT_TRUE(each.done());
        }
    });
}

/// A coroutine that another one resumes directly has run when resume() returns.
TEST(Depth, ACoroutineResumedDirectlyContinuesAtOnce) {
    door outer;
    door inner;
    struct work {
        static inline_task opens(door& mine, door& other, inline_task& last) {
            co_await mine;
            other.waiter.resume();
            co_return last.done() ? last.get() : -1; // get() would block for ever
        }
    };
    inline_task waits = links::next(links::first(inner));
    inline_task opener = work::opens(outer, inner, waits);
    inline_task last = links::next(std::move(opener));
    outer.waiter.resume();
    ASSERT_TRUE(last.done());
    EXPECT_EQ(last.get(), 3);
}

// mistake 22: a chain of 10^6 awaits is stopped or destroyed
// shows: nothing: the stack does not grow with the depth
ISOLATED_TEST(Depth, G10_AChainOfAsyncTasksOnAContextIsAbandoned) {
    on_small_stack([] {
        std::atomic<int> alive = 0;
        using contexts_task = async_task<void, io_context>;
        struct work {
            static contexts_task first(executor_arg_t, io_context&, std::atomic<int>& lives) {
                const counted local(lives);
                co_await sleep_for(1h);
            }
            static contexts_task next(executor_arg_t, io_context&, contexts_task before,
                                      std::atomic<int>& lives) {
                const counted local(lives);
                co_await std::move(before);
            }
        };
        {
            constexpr int shorter = depth / 4;
            io_context context;
            contexts_task last = work::first(executor_arg, context, alive);
            for (int i = 1; i < shorter; ++i) {
                last = work::next(executor_arg, context, std::move(last), alive);
            }
            any_executor(context).execute([&] { context.stop(); });
            context.run();
            EXPECT_TRUE(last.done());
            last.catching([](std::exception_ptr) {});
        }
        EXPECT_EQ(alive, 0);
    });
}

// ---- awaits and combinations

/// How a level awaits the next one.
enum class by {
    await,
    when_all,
    when_all_range,
    when_any,
    timeout,
    scope,
    supervisor,
    for_each_concurrent,
    shield,
    token,
    generator,
    join_handle,
    several,
    generators
};

struct tree {
    by how = by::await;
    bool waits = false; // at the bottom
    bool throws = false;
    std::atomic<int> alive{0};
    std::binary_semaphore begun{0};
};

task<> level(tree& t, int below);

task<> by_when_all(tree& t, int below) { co_await when_all(level(t, below), yield()); }
task<> by_range(tree& t, int below) {
    std::vector<task<>> children;
    children.push_back(level(t, below));
    children.push_back(level(t, -1));
    co_await when_all(std::move(children));
}
task<> by_when_any(tree& t, int below) {
    co_await when_any(level(t, below), timeout(level(t, below == 0 ? 0 : -2), 1h));
}
task<> by_timeout(tree& t, int below) { co_await timeout(level(t, below), 1h); }
task<> by_scope(tree& t, int below) {
    coil::scope children(co_await this_task::stop_token());
    children.spawn(level(t, below));
    children.spawn(level(t, -1));
    co_await children.join();
}
task<> by_supervisor(tree& t, int below) {
    supervisor children;
    co_await children.spawn(level(t, below));
    co_await children.spawn(level(t, -1));
    co_await children.join();
}
task<> by_for_each(tree& t, int below) {
    const std::array<int, 1> numbers{below};
    co_await for_each_concurrent(numbers, 2, [&t](int n) { return level(t, n); });
}
task<> by_shield(tree& t, int below) { co_await shield(level(t, below)); }
task<> by_token(tree& t, int below) {
    const inplace_stop_source never_stopped;
    co_await with_stop_token(level(t, below), never_stopped.get_token());
}

async_generator<int> elements(tree& t, int below) {
    co_await level(t, below);
    co_yield 1;
}
task<> by_generator(tree& t, int below) {
    auto all = elements(t, below);
    co_await all.next();
}

async_generator<int> nested_elements(tree& t, int below) {
    const counted local(t.alive);
    if (below > 0) {
        auto all = nested_elements(t, below - 1);
        co_await all.next();
    } else {
        co_await level(t, 0);
    }
    co_yield 1;
}
task<> by_generators(tree& t, int below) {
    auto all = nested_elements(t, below);
    co_await all.next();
}

task<> by_join(tree& t, int below) {
    auto handle = spawn(level(t, below));
    if (below % 2 == 0) {
        co_await timeout(std::move(handle), 1h);
    } else {
        coil::scope children(co_await this_task::stop_token());
        children.spawn(std::move(handle));
        co_await children.join();
    }
}

task<> next_level(tree& t, int below, by how) {
    switch (how) {
    case by::await:
        return level(t, below);
    case by::when_all:
        return by_when_all(t, below);
    case by::when_all_range:
        return by_range(t, below);
    case by::when_any:
        return by_when_any(t, below);
    case by::timeout:
        return by_timeout(t, below);
    case by::scope:
        return by_scope(t, below);
    case by::supervisor:
        return by_supervisor(t, below);
    case by::for_each_concurrent:
        return by_for_each(t, below);
    case by::shield:
        return by_shield(t, below);
    case by::token:
        return by_token(t, below);
    case by::generator:
        return by_generator(t, below);
    case by::join_handle:
        return by_join(t, below);
    case by::generators:
        return by_generators(t, below);
    default:
        return next_level(t, below, static_cast<by>(below % static_cast<int>(by::several)));
    }
}

/// A number below zero is a leaf: -1 ends immediately, -2 never.
task<> level(tree& t, int below) {
    const counted local(t.alive);
    if (below > 0) {
        co_await next_level(t, below - 1, t.how);
    } else if (below == 0) {
        t.begun.release();
        if (t.throws) {
            throw std::runtime_error("at the bottom");
        }
        if (t.waits) {
            co_await sleep_for(1h);
        }
    } else if (below == -2) {
        co_await sleep_for(1h);
    }
}

/// Fewer levels if each takes several coroutines, unless COIL_TEST_LONG is set.
int levels_of(by how) {
    if (std::getenv("COIL_TEST_LONG") != nullptr) {
        return depth;
    }
    switch (how) {
    case by::await:
    case by::shield:
        return depth;
    case by::when_all_range:
    case by::when_any:
    case by::scope:
    case by::supervisor:
    case by::for_each_concurrent:
    case by::join_handle:
    case by::several:
        return depth / 8; // several coroutines each
    default:
        return depth / 4;
    }
}

void complete_tree(by how) {
    on_small_stack([how] {
        tree t;
        t.how = how;
        coil::run(level(t, levels_of(how)));
        EXPECT_EQ(t.alive, 0);
    });
}

void stop_tree(by how) {
    on_small_stack([how] {
        tree t;
        t.how = how;
        t.waits = true;
        io_context context;
        auto handle = context.spawn(level(t, levels_of(how)));
        std::jthread stopper([&] {
            t.begun.acquire();
            handle.cancel();
        });
        context.run();
        EXPECT_EQ(t.alive, 0);
    });
}

void destroy_tree(by how) {
    on_small_stack([how] {
        tree t;
        t.how = how;
        t.waits = true;
        io_context context;
        context.co_spawn(level(t, levels_of(how)));
        std::jthread stopper([&] {
            t.begun.acquire();
            context.stop();
        });
        context.run();
        EXPECT_EQ(t.alive, 0);
    });
}

#define TREE_TESTS(Name, how)                                                                      \
    ISOLATED_TEST(Depth, G10_##Name##Complete) { complete_tree(how); }                             \
    ISOLATED_TEST(Depth, G10_##Name##AreDestroyed) { destroy_tree(how); }
#define STOPPED_TREE_TEST(Name, how)                                                               \
    ISOLATED_TEST(Depth, G10_##Name##AreAskedToStop) { stop_tree(how); }

TREE_TESTS(NestedAwaits, by::await)
TREE_TESTS(NestedWhenAlls, by::when_all)
TREE_TESTS(NestedWhenAllsOfRanges, by::when_all_range)
TREE_TESTS(NestedWhenAnys, by::when_any)
TREE_TESTS(NestedTimeouts, by::timeout)
TREE_TESTS(NestedScopes, by::scope)
TREE_TESTS(NestedSupervisors, by::supervisor)
TREE_TESTS(NestedForEachConcurrents, by::for_each_concurrent)
TREE_TESTS(NestedShields, by::shield)
TREE_TESTS(NestedTokens, by::token)
TREE_TESTS(TasksInNestedGenerators, by::generator)
TREE_TESTS(NestedGenerators, by::generators)
TREE_TESTS(NestedJoins, by::join_handle)
TREE_TESTS(NestedCombinations, by::several)
// Not for shields, which keep stop requests from the levels below.
STOPPED_TREE_TEST(NestedAwaits, by::await)
STOPPED_TREE_TEST(NestedWhenAlls, by::when_all)
STOPPED_TREE_TEST(NestedWhenAllsOfRanges, by::when_all_range)
STOPPED_TREE_TEST(NestedWhenAnys, by::when_any)
STOPPED_TREE_TEST(NestedTimeouts, by::timeout)
STOPPED_TREE_TEST(NestedScopes, by::scope)
STOPPED_TREE_TEST(NestedSupervisors, by::supervisor)
STOPPED_TREE_TEST(NestedForEachConcurrents, by::for_each_concurrent)
STOPPED_TREE_TEST(NestedTokens, by::token)
STOPPED_TREE_TEST(TasksInNestedGenerators, by::generator)
STOPPED_TREE_TEST(NestedGenerators, by::generators)
STOPPED_TREE_TEST(NestedJoins, by::join_handle)

ISOLATED_TEST(Depth, G10_G12_AnExceptionLeavesNestedAwaits) {
    on_small_stack([] {
        tree t;
        t.throws = true;
        EXPECT_THROW(coil::run(level(t, depth / 10)), std::runtime_error);
        EXPECT_EQ(t.alive, 0);
    });
}

// ---- tasks that own other tasks through their parameters

struct wrapping {
    static task<> wrap(task<> inner, std::atomic<int>& alive) {
        const counted local(alive);
        co_await std::move(inner);
    }
    static task<> deep(task<> bottom, std::atomic<int>& alive) {
        task<> all = std::move(bottom);
        for (int i = 1; i < depth; ++i) {
            all = wrap(std::move(all), alive);
        }
        return all;
    }
    static task<> nothing() { co_return; }
};

ISOLATED_TEST(Depth, G10_TasksInParametersComplete) {
    on_small_stack([] {
        std::atomic<int> alive = 0;
        coil::run(wrapping::deep(wrapping::nothing(), alive));
        EXPECT_EQ(alive, 0);
    });
}

ISOLATED_TEST(Depth, G10_TasksInParametersAreNeverStarted) {
    on_small_stack([] {
        std::atomic<int> alive = 0;
        {
            [[maybe_unused]] const task<> never = wrapping::deep(wrapping::nothing(), alive);
        }
        EXPECT_EQ(alive, 0);
    });
}

ISOLATED_TEST(Depth, G10_TasksInParametersAreDestroyed) {
    on_small_stack([] {
        std::atomic<int> alive = 0;
        std::binary_semaphore begun{0};
        io_context context;
        context.co_spawn(wrapping::deep(sleeps_for_ever(alive, begun), alive));
        std::jthread stopper([&] {
            begun.acquire();
            context.stop();
        });
        context.run();
        EXPECT_EQ(alive, 0);
    });
}

// ---- order

/// A child may refer to the frame of its awaiter, and a combination's child to all frames above it.
TEST(Depth, G5_ChildrenAreDestroyedBeforeWhatTheyReferTo) {
    std::vector<int> order;
    struct work {
        static task<> leaf(std::vector<int>& gone, int n) {
            const at_end local([&gone, n] { gone.push_back(n); });
            co_await sleep_for(1h);
        }
        static task<> group(std::vector<int>& gone) {
            const at_end local([&gone] { gone.push_back(10); });
            std::vector<task<>> children;
            children.push_back(leaf(gone, 1));
            children.push_back(leaf(gone, 2));
            co_await when_all(timeout(leaf(gone, 3), 2h), shield(leaf(gone, 4)),
                              when_all(std::move(children)), leaf(gone, 5));
        }
        static task<> all(std::vector<int>& gone) {
            const at_end first([&gone] { gone.push_back(22); });
            task<> child = group(gone);
            const at_end last([&gone] { gone.push_back(21); });
            coil::scope s;
            s.spawn(leaf(gone, 11));
            s.spawn(std::move(child));
            co_await s.join();
        }
    };
    {
        io_context context;
        context.co_spawn(work::all(order));
        any_executor(context).execute([&] {
            any_executor(context).execute(
                [&] { any_executor(context).execute([&] { context.stop(); }); });
        });
        context.run();
    }
    EXPECT_EQ(order.size(), 9U);
    EXPECT_EQ((std::vector<int>{order.end() - 4, order.end()}), (std::vector<int>{10, 11, 21, 22}));
    EXPECT_EQ(order.front(), 5);
}

/// A task may be moved while a coroutine awaits it: its new owner destroys it.
TEST(Depth, G5_ATaskThatIsMovedWhileItIsAwaited) {
    std::atomic<int> alive = 0;
    std::binary_semaphore begun{0};
    struct holder {
        task<> work;
    };
    struct work {
        static task<> awaits(holder& h) { co_await std::move(h.work); }
    };
    {
        holder first{sleeps_for_ever(alive, begun)};
        io_context context;
        context.co_spawn(work::awaits(first));
        any_executor(context).execute([&] {
            any_executor(context).execute([&] {
                holder second{std::move(first.work)};
                context.stop();
                first.work = std::move(second.work);
            });
        });
        context.run();
    }
    EXPECT_EQ(alive, 0);
}

} // namespace
