// Cancelling n waiting members of any queue takes O(n) time.

#include "support.hpp"
#include "support/run.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace {

using namespace coil;
using namespace std::chrono_literals;

/// A linear algorithm takes about 0.1 s. An algorithm that searches the queue for each member takes
/// minutes; with a sanitizer, and so with fewer members, tens of seconds.
constexpr int members = coil_test::sanitized ? 20'000 : 100'000;
constexpr auto limit = coil_test::sanitized ? 20s : 5s;

task<> read_held_back(int fd) {
    char byte;
    EXPECT_EQ(co_await io::read(fd, {&byte, 1}), -ECANCELED);
}

task<> cancel_held_back(int fd) {
    scope s;
    for (int i = 0; i < members; ++i) {
        s.spawn(read_held_back(fd));
    }
    co_await yield();
    co_await yield();
    s.cancel();
    co_await s.join();
}

TEST(CancellationCost, G3_OperationsHeldBackByTheBoundLeaveTheirQueueInConstantTime) {
    const coil_test::pipe_pair p;
    io_context_options options;
    options.max_in_flight = 2;
    io_context ctx(options);
    const auto begin = std::chrono::steady_clock::now();
    ctx.co_spawn(cancel_held_back(p.in));
    ctx.run();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, limit);
}

task<> destroy_held_back(int fd, io_context& ctx) {
    scope s;
    for (int i = 0; i < members; ++i) {
        s.spawn(read_held_back(fd));
    }
    co_await yield();
    co_await yield();
    ctx.stop();
    co_await sleep_for(1h); // destroyed here, including the scope
}

TEST(CancellationCost, G5_AShutdownWithOperationsHeldBackIsLinear) {
    const coil_test::pipe_pair p;
    io_context_options options;
    options.max_in_flight = 2;
    io_context ctx(options);
    const auto begin = std::chrono::steady_clock::now();
    ctx.co_spawn(destroy_held_back(p.in, ctx));
    ctx.run();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, limit);
}

/// One primitive of each kind, in a state in which a waiter waits.
struct places {
    places() {
        static_cast<void>(locked.try_lock());
        static_cast<void>(alone.try_lock());
        static_cast<void>(full.try_send(1));
        group.add(1);
    }
    ~places() {
        locked.unlock();
        alone.unlock();
        group.done();
        gate.count_down();
    }
    mutex locked;
    shared_mutex alone;
    mutex of_condition;
    condition_variable condition;
    counting_semaphore<> permits{0};
    event happens;
    auto_reset_event happens_once;
    event_value<int> value;
    latch gate{1};
    barrier<> meeting{members + 1};
    wait_group group;
    channel<int> empty{1};
    channel<int> full{1};
    broadcast<int> news{2};
};

using waiting = task<> (*)(places&);

constexpr std::pair<const char*, waiting> kinds[] = {
    {"sleep", [](places&) -> task<> { co_await sleep_for(1h); }},
    {"mutex", [](places& p) -> task<> { co_await p.locked.lock(); }},
    {"shared_mutex", [](places& p) -> task<> { co_await p.alone.lock(); }},
    {"shared_mutex, shared", [](places& p) -> task<> { co_await p.alone.lock_shared(); }},
    {"condition_variable",
     [](places& p) -> task<> {
         const auto guard = co_await p.of_condition.lock_guard();
         co_await p.condition.wait(p.of_condition);
     }},
    {"semaphore", [](places& p) -> task<> { co_await p.permits.acquire(); }},
    {"event", [](places& p) -> task<> { co_await p.happens.wait(); }},
    {"auto_reset_event", [](places& p) -> task<> { co_await p.happens_once.wait(); }},
    {"event_value", [](places& p) -> task<> { co_await p.value.wait(); }},
    {"latch", [](places& p) -> task<> { co_await p.gate.wait(); }},
    {"barrier", [](places& p) -> task<> { co_await p.meeting.arrive_and_wait(); }},
    {"wait_group", [](places& p) -> task<> { co_await p.group.wait(); }},
    {"channel, recv", [](places& p) -> task<> { co_await p.empty.recv(); }},
    {"channel, send", [](places& p) -> task<> { co_await p.full.send(1); }},
    {"broadcast",
     [](places& p) -> task<> {
         auto receiver = p.news.subscribe();
         co_await receiver.recv();
     }},
};

task<> cancel_waiters(places& p, waiting wait, bool destroys, io_context& ctx) {
    scope s;
    for (int i = 0; i < members; ++i) {
        s.spawn(wait(p));
    }
    co_await yield();
    co_await yield();
    if (destroys) {
        ctx.stop();
        co_await sleep_for(1h); // destroyed here
    }
    s.cancel();
    co_await s.join();
}

TEST(CancellationCost, G3_G5_WaitersOfEveryKindLeaveInConstantTime) {
    for (const auto& [name, wait] : kinds) {
        for (const bool destroys : {false, true}) {
            places p;
            io_context ctx;
            ctx.co_spawn(cancel_waiters(p, wait, destroys, ctx));
            const auto begin = std::chrono::steady_clock::now();
            ctx.run();
            EXPECT_LT(std::chrono::steady_clock::now() - begin, limit)
                << name << (destroys ? ", destroyed" : ", cancelled");
        }
    }
}

} // namespace
