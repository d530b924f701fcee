// Chains of tasks whose scopes several contexts leave together, without joining them. The simulator
// selects the order.

#include "lifetimes/support.hpp"
#include "support/run.hpp"

#include <coil/sim/world.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

using namespace lifetime_test;

namespace {

struct scope_chain {
    std::vector<io_context*> contexts;
    std::uint64_t seed = 0;
    std::atomic<int> alive = 0;

    [[nodiscard]] io_context& at(unsigned depth) const {
        return *contexts[depth % contexts.size()];
    }
    task<> link(unsigned depth, unsigned more) {
        const counted local(alive);
        if (more == 0) {
            co_return;
        }
        scope s;
        s.spawn(goes(depth + 1, more - 1));
        // Then the task leaves its scope, at about the same time as others.
        co_await sleep_for(std::chrono::microseconds((seed >> depth) % 4 * 100));
    }
    task<> goes(unsigned depth, unsigned more) {
        const counted local(alive);
        co_await on(at(depth), link(depth, more));
    }
};

/// A destructor that waits on a context's thread must not destroy a task above one that is being
/// destroyed further down on that stack, even if the task's own context cannot destroy it either.
ISOLATED_TEST(Unjoined, G5_SeveralContextsLeaveScopesOfOneChain) {
    const std::uint64_t last = coil_test::sanitized ? 300 : 2000;
    for (std::uint64_t seed = 1; seed <= last; ++seed) {
        coil::sim::world_options options;
        if (seed % 2 == 0) {
            options.faults = coil::sim::fault_plan::timing();
        }
        coil::sim::world around(seed, options);
        coil::sim::host& host = around.host("host");
        scope_chain tasks{.contexts = {}, .seed = seed};
        for (int n = 0; n < 2 + static_cast<int>(seed / 5 % 3); ++n) {
            tasks.contexts.push_back(&host.make_context({}));
        }
        tasks.at(0).co_spawn(tasks.link(0, 3 + seed % 5));
        around.run_for(20ms);
        host.end_contexts();
        EXPECT_EQ(tasks.alive, 0) << "seed " << seed;
    }
}

/// How long a shutdown waits before it destroys held-back tasks does not depend on their number.
ISOLATED_TEST(Unjoined, G5_ManyTasksOwnScopesOfTasksThatDoNotStop) {
    constexpr int many = 50;
    coil::sim::world around(1);
    coil::sim::host& host = around.host("host");
    io_context& a = host.make_context({});
    io_context& b = host.make_context({});
    std::atomic<int> alive = 0;
    std::atomic<int> begun = 0;
    std::atomic<int> owners = 0;
    auto ignores = [&]() -> task<> {
        const counted local(alive);
        ++begun;
        for (;;) {
            co_await shield(sleep_for(1ms));
        }
    };
    auto goes = [&]() -> task<> {
        const counted local(alive);
        co_await on(b, ignores());
    };
    auto owns = [&]() -> task<> {
        const counted local(owners);
        scope s;
        s.spawn(goes());
        co_await sleep_for(1h);
    };
    for (int i = 0; i < many; ++i) {
        a.co_spawn(owns());
    }
    ASSERT_TRUE(around.run_until([&] { return begun == many; }, 1s));
    a.stop();
    EXPECT_TRUE(around.run_until([&] { return owners == 0; }, 100ms)) << owners << " are left";
    host.end_contexts();
    EXPECT_EQ(alive, 0);
}

/// The tasks of a generator on `reads`, in whose body a task on `other` is awaited.
struct killed_reader {
    io_context& reads;
    io_context& other;
    std::unique_ptr<async_generator<int>> all = nullptr;
    std::atomic<int> alive = 0;

    task<> sleeps() {
        const counted local(alive);
        co_await sleep_for(1h);
    }
    async_generator<int> elements() {
        const counted local(alive);
        co_await on(other, sleeps());
        co_yield 1;
    }
    task<> owns() {
        const counted local(alive);
        all = std::make_unique<async_generator<int>>(elements());
        co_await sleep_for(1ms);
        all.reset();
    }
    task<> reader() {
        const counted local(alive);
        co_await all->next();
        co_await sleep_for(1h);
    }
    task<> goes(task<> work) {
        const counted local(alive);
        co_await on(reads, std::move(work));
    }
    task<> leaves(task<> work, std::chrono::microseconds after) {
        const counted local(alive);
        scope s;
        s.spawn(goes(std::move(work)));
        co_await sleep_for(after);
    }
};

/// The body of a generator awaits a task on `other`. The destruction of this task is requested
/// first because the generator's reader is destroyed, then because the generator is. Meanwhile a
/// destructor on `other` waits for a task that only the generator's context could destroy.
ISOLATED_TEST(Unjoined, G5_AGeneratorIsDestroyedAfterARequestToDestroyItsReader) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        coil::sim::world_options options;
        if (seed % 2 == 0) {
            options.faults = coil::sim::fault_plan::timing();
        }
        coil::sim::world around(seed, options);
        coil::sim::host& host = around.host("host");
        io_context& third = host.make_context({});
        io_context& reads = host.make_context({});
        io_context& other = host.make_context({});
        killed_reader tasks{.reads = reads, .other = other};
        reads.co_spawn(tasks.owns());
        around.run_for(10us);
        third.co_spawn(
            tasks.leaves(tasks.reader(), std::chrono::microseconds(1000 - 10 * (seed % 7))));
        other.co_spawn(tasks.leaves(tasks.sleeps(), 1ms));
        around.run_for(20ms);
        host.end_contexts();
        EXPECT_EQ(tasks.alive, 0) << "seed " << seed;
    }
}

} // namespace
