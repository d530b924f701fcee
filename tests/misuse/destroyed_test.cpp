// Objects that are destroyed while tasks wait for them end the program with a message.

#include "support/run.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>

using namespace coil;
using namespace std::chrono_literals;

namespace destroyed {

template <class T>
task<> waits(T& object) {
    co_await object.wait();
}
task<> locks(mutex& m) { co_await m.lock(); }
task<> acquires(counting_semaphore<>& s) { co_await s.acquire(); }
task<> receives(channel<int>& c) { co_await c.recv(); }
task<> sends(channel<int>& c) { co_await c.send(1); }
task<> locks_shared(shared_mutex& m) { co_await m.lock_shared(); }
task<> arrives(barrier<>& b) { co_await b.arrive_and_wait(); }
task<> waits_locked(condition_variable& condition, mutex& m) {
    co_await m.lock();
    co_await condition.wait(m);
}

/// Destroys `object` while the task waits for it.
template <class T, class F>
void destroy_awaited(std::unique_ptr<T> object, F use) {
    coil::run([](std::unique_ptr<T> awaited, F f) -> task<> {
        co_spawn(f(*awaited));
        co_await yield();
        co_await yield();
        awaited.reset();
        co_await sleep_for(1ms);
    }(std::move(object), use));
}

// mistake 14: an event, mutex, latch, ... is destroyed while a coroutine waits for it
TEST(DestroyedWhileAwaited, Event) {
    EXPECT_DEATH(destroy_awaited(std::make_unique<event>(), waits<event>),
                 "coil: a synchronisation primitive is destroyed while a coroutine waits for it "
                 "\\(event, in .*waits.*\\)");
}

task<> waits_with_a_limit(event& e) { co_await timeout(e.wait(), 1s); }

/// The await in a timeout() has no coroutine of its own.
TEST(DestroyedWhileAwaited, EventThatIsAwaitedWithALimit) {
    EXPECT_DEATH(destroy_awaited(std::make_unique<event>(), waits_with_a_limit),
                 "\\(event, in .*waits_with_a_limit.*, task spawned at .*destroyed_test.cpp:");
}

TEST(DestroyedWhileAwaited, EventThatANamedTaskAwaits) {
    EXPECT_DEATH(coil::run([]() -> task<> {
                     auto e = std::make_unique<event>();
                     co_spawn(waits_with_a_limit(*e), "waiter");
                     co_await yield();
                     e.reset();
                 }()),
                 "\\(event, in .*, task 'waiter' spawned at .*destroyed_test.cpp:");
}

TEST(DestroyedWhileAwaited, Mutex) {
    auto m = std::make_unique<mutex>();
    ASSERT_TRUE(m->try_lock());
    EXPECT_DEATH(destroy_awaited(std::move(m), locks), "\\(mutex, in .*locks");
    m.reset();
}

TEST(DestroyedWhileAwaited, SharedMutex) {
    auto m = std::make_unique<shared_mutex>();
    ASSERT_TRUE(m->try_lock());
    EXPECT_DEATH(destroy_awaited(std::move(m), locks_shared), "\\(shared_mutex, in");
    m.reset();
}

TEST(DestroyedWhileAwaited, Latch) {
    EXPECT_DEATH(destroy_awaited(std::make_unique<latch>(1), waits<latch>), "\\(latch, in");
}

TEST(DestroyedWhileAwaited, Semaphore) {
    EXPECT_DEATH(destroy_awaited(std::make_unique<counting_semaphore<>>(0), acquires),
                 "\\(semaphore, in");
}

TEST(DestroyedWhileAwaited, Barrier) {
    EXPECT_DEATH(destroy_awaited(std::make_unique<barrier<>>(2), arrives), "\\(barrier, in");
}

TEST(DestroyedWhileAwaited, WaitGroup) {
    EXPECT_DEATH(destroy_awaited(std::make_unique<wait_group>(1), waits<wait_group>),
                 "\\(wait_group, in");
}

TEST(DestroyedWhileAwaited, Channel) {
    EXPECT_DEATH(destroy_awaited(std::make_unique<channel<int>>(1), receives),
                 "\\(channel::recv, in");
    EXPECT_DEATH(destroy_awaited(std::make_unique<channel<int>>(0), sends), "\\(channel::send, in");
}

TEST(DestroyedWhileAwaited, ConditionVariable) {
    mutex m;
    EXPECT_DEATH(destroy_awaited(std::make_unique<condition_variable>(),
                                 [&](condition_variable& c) { return waits_locked(c, m); }),
                 "\\(condition_variable, in");
}

TEST(DestroyedWhileAwaited, NotIfTheWaitersWereDestroyedFirst) {
    event never;
    const auto ended = std::make_unique<event>();
    {
        io_context ctx;
        ctx.co_spawn(waits(*ended));
        ctx.co_spawn(waits(never));
        ctx.co_spawn([](io_context& all) -> task<> {
            co_await yield();
            all.stop();
        }(ctx));
        ctx.run();
    }
    EXPECT_FALSE(ended->is_set());
}

TEST(DestroyedWhileAwaited, NotByExit) {
    EXPECT_EXIT(
        {
            static event e;
            static inplace_stop_source source;
            coil::run([]() -> task<> {
                static_cast<void>(spawn(waits(e), source.get_token()));
                co_await yield();
                co_await yield();
                std::exit(3);
            }());
        },
        testing::ExitedWithCode(3), "^$");
}

#if COIL_ASSERTIONS
TEST(DestroyedRuntime, IsSpawnedOn) {
    alignas(runtime) static std::array<std::byte, sizeof(runtime)> memory;
    auto* const gone = ::new (memory.data()) runtime(1);
    gone->~runtime();
    EXPECT_DEATH(gone->co_spawn([]() -> task<> { co_return; }()),
                 "coil: a runtime is used after it was destroyed");
}
#endif

// mistake 14: an inplace_stop_source is destroyed before its callbacks
// shows: `an inplace_stop_source is destroyed while callbacks are registered`
TEST(StopSource, DestroyedWithARegisteredCallback) {
    EXPECT_DEATH(
        {
            std::optional<inplace_stop_source> source(std::in_place);
            const inplace_stop_callback callback(source->get_token(), [] {});
            source.reset();
        },
        "coil: an inplace_stop_source is destroyed while callbacks are registered");
}

TEST(StopSource, DestroyedWhileATaskWithItsTokenWaits) {
    EXPECT_DEATH(coil::run([]() -> task<> {
                     auto source = std::make_unique<inplace_stop_source>();
                     auto sleeper =
                         spawn([]() -> task<> { co_await sleep_for(10s); }(), source->get_token());
                     co_await yield();
                     source.reset();
                     co_await std::move(sleeper);
                 }()),
                 "coil: an inplace_stop_source is destroyed while callbacks are registered");
}

TEST(StopSource, DestroyedAfterItsTasksHaveEnded) {
    coil::run([]() -> task<> {
        auto source = std::make_unique<inplace_stop_source>();
        auto sleeper = spawn([]() -> task<> { co_await sleep_for(10s); }(), source->get_token());
        co_await yield();
        source->request_stop();
        co_await std::move(sleeper); // sleep_for() returned early
        source.reset();
    }());
}

} // namespace destroyed
