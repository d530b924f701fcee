// Generators that are destroyed while a coroutine waits in next(), by code other than that
// coroutine's.

#include "lifetimes/support.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

using namespace lifetime_test;

namespace {

/// A generator on the heap. The last reference to it may be destroyed together with its body.
struct holder_of_generator {
    std::optional<async_generator<int>> all;
};
using shared_holder = std::shared_ptr<holder_of_generator>;

task<> sleeps_with(shared_holder self, std::atomic<int>& alive) {
    const counted local(alive);
    const shared_holder last = std::move(self);
    co_await sleep_for(1h);
}
async_generator<int> holds_in_body(shared_holder self, std::atomic<int>& alive) {
    const counted local(alive);
    const shared_holder last = std::move(self);
    co_await sleep_for(1h);
    co_yield 1;
}
async_generator<int> holds_below(shared_holder self, std::atomic<int>& alive) {
    const counted local(alive);
    co_await sleeps_with(std::move(self), alive);
    co_yield 1;
}

/// Destroys a task that waits in next(), and with it the generator.
template <class Body>
void destroy_waiting_task(Body body) {
    std::atomic<int> alive = 0;
    auto made = std::make_shared<holder_of_generator>();
    made->all.emplace(body(made, alive));
    holder_of_generator& kept_by_its_body = *std::exchange(made, nullptr);
    auto waits = [&]() -> task<> {
        const counted local(alive);
        co_await kept_by_its_body.all->next();
    };
    auto top = [&]() -> task<> {
        scope s;
        s.spawn(waits());
        co_await sleep_for(1ms);
        s.cancel();
    };
    io_context ctx;
    ctx.co_spawn(top());
    ctx.run();
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Generators, G1_ALocalOfTheBodyHasTheLastReferenceToTheGenerator) {
    destroy_waiting_task(holds_in_body);
}
ISOLATED_TEST(Generators, G1_ATaskBelowTheBodyHasTheLastReferenceToTheGenerator) {
    destroy_waiting_task(holds_below);
}

ISOLATED_TEST(Generators, G1_ALocalOfTheBodyDestroysTheTaskInNext) {
    std::atomic<int> alive = 0;
    std::optional<scope> waiting;
    auto elements = [&]() -> async_generator<int> {
        const counted local(alive);
        const at_end destroys([&] { waiting.reset(); });
        co_await sleep_for(1h);
        co_yield 1;
    };
    auto waits = [&](async_generator<int>& all) -> task<> {
        const counted local(alive);
        co_await all.next();
    };
    auto top = [&]() -> task<> {
        auto all = elements();
        waiting.emplace();
        waiting->spawn(waits(all));
        co_await sleep_for(1ms);
        waiting->cancel();
    };
    io_context ctx;
    ctx.co_spawn(top());
    ctx.run();
    EXPECT_EQ(alive, 0);
}

/// A shutdown destroys the owner of a generator, whose body has to wait for a task on another
/// context. Meanwhile the shutdown must not destroy a remote child that waits in next(). With
/// `in_scope`, it destroys the remote child that owns the unjoined scope of the task in next().
void shut_down_owner_first(bool in_scope) {
    std::atomic<int> alive = 0;
    std::binary_semaphore ready{0};
    io_context a;
    io_context b;
    async_generator<int>* shared_generator = nullptr;
    auto elements = [&]() -> async_generator<int> {
        const counted local(alive);
        co_await on(b, sleeps_for_ever(alive, ready));
        co_yield 1;
    };
    auto owns = [&]() -> task<> {
        const counted local(alive);
        auto all = elements();
        shared_generator = &all;
        ready.release();
        co_await sleep_for(1h);
    };
    auto waits = [&]() -> task<> {
        const counted local(alive);
        co_await shared_generator->next();
    };
    auto waits_in_scope = [&]() -> task<> {
        const counted local(alive);
        scope s;
        s.spawn(waits());
        co_await sleep_for(1h);
    };
    auto goes = [&]() -> task<> {
        const counted local(alive);
        co_await on(a, in_scope ? waits_in_scope() : waits());
    };
    a.co_spawn(owns());
    a.start();
    b.start();
    ready.acquire();
    b.co_spawn(goes());
    ready.acquire();
    std::binary_semaphore busy{0};
    std::binary_semaphore may_continue{0};
    b.post([&] { // the destructor on `a` has to wait
        busy.release();
        may_continue.acquire();
    });
    busy.acquire();
    a.stop();
    std::this_thread::sleep_for(20ms);
    b.stop();
    may_continue.release();
    a.join();
    b.join();
    EXPECT_EQ(alive, 0);
}

ISOLATED_TEST(Generators, G5_AShutdownDestroysTheOwnerBeforeTheTaskInNext) {
    shut_down_owner_first(false);
}
ISOLATED_TEST(Generators, G5_AShutdownDestroysTheOwnerBeforeAScopeWithTheTaskInNext) {
    shut_down_owner_first(true);
}

} // namespace
