#pragma once

// One wait of every primitive, what ends it, and what must remain afterwards, whichever of wake-up
// and cancellation came first.
//
//     void prepare();             makes the next wait() wait
//     auto wait();                returns the awaitable
//     void got(result...);        called if the wait succeeded
//     void wake();                ends the wait; called by any thread
//     void check(bool got);       nothing is lost or duplicated; ready for the next round

#include "sync/support.hpp"

#include <memory>
#include <optional>
#include <type_traits>

namespace sync_test {

struct mutex_scenario {
    mutex m;
    void prepare() { ASSERT_TRUE(m.try_lock()); }
    auto wait() { return m.lock(); }
    void got() {}
    void wake() { m.unlock(); }
    void check(bool got) {
        EXPECT_EQ(m.try_lock(), !got);
        m.unlock();
    }
};

struct guard_scenario {
    mutex m;
    void prepare() { ASSERT_TRUE(m.try_lock()); }
    auto wait() { return m.lock_guard(); }
    void got(mutex::guard held) { EXPECT_TRUE(held.owns_lock()); }
    void wake() { m.unlock(); }
    void check(bool) {
        EXPECT_TRUE(m.try_lock());
        m.unlock();
    }
};

struct semaphore_scenario {
    counting_semaphore<> s{0};
    void prepare() {}
    auto wait() { return s.acquire(); }
    void got() {}
    void wake() { s.release(); }
    void check(bool got) {
        EXPECT_EQ(s.try_acquire(), !got);
        EXPECT_FALSE(s.try_acquire());
    }
};

struct auto_event_scenario {
    auto_reset_event e;
    void prepare() {}
    auto wait() { return e.wait(); }
    void got() {}
    void wake() { e.set(); }
    void check(bool got) {
        EXPECT_EQ(e.try_wait(), !got);
        EXPECT_FALSE(e.try_wait());
    }
};

struct event_scenario {
    event e;
    void prepare() {}
    auto wait() { return e.wait(); }
    void got() { EXPECT_TRUE(e.is_set()); }
    void wake() { e.set(); }
    void check(bool) {
        EXPECT_TRUE(e.is_set());
        e.reset();
    }
};

struct event_value_scenario {
    std::optional<event_value<int>> e;
    void prepare() { e.emplace(); }
    auto wait() { return e->wait(); }
    void got(int& value) { EXPECT_EQ(value, 5); }
    void wake() { EXPECT_TRUE(e->set(5)); }
    void check(bool) { EXPECT_EQ(e->get(), 5); }
};

struct latch_scenario {
    std::optional<latch> l;
    void prepare() { l.emplace(1); }
    auto wait() { return l->wait(); }
    void got() { EXPECT_TRUE(l->try_wait()); }
    void wake() { l->count_down(); }
    void check(bool) { EXPECT_TRUE(l->try_wait()); }
};

struct wait_group_scenario {
    wait_group g;
    void prepare() { g.add(); }
    auto wait() { return g.wait(); }
    void got() {}
    void wake() { g.done(); }
    void check(bool) {}
};

struct barrier_scenario {
    int phases = 0;
    struct counting {
        int* phases;
        void operator()() noexcept { ++*phases; }
    };
    barrier<counting> b{2, counting{&phases}};
    int rounds = 0;
    void prepare() { ++rounds; }
    auto wait() { return b.arrive_and_wait(); }
    void got() {}
    void wake() { static_cast<void>(b.arrive()); }
    void check(bool) { EXPECT_EQ(phases, rounds); }
};

struct writer_scenario {
    shared_mutex m;
    void prepare() { ASSERT_TRUE(m.try_lock_shared()); }
    auto wait() { return m.lock(); }
    void got() {}
    void wake() { m.unlock_shared(); }
    void check(bool got) {
        EXPECT_EQ(m.try_lock(), !got);
        m.unlock();
    }
};

struct reader_scenario {
    shared_mutex m;
    void prepare() { ASSERT_TRUE(m.try_lock()); }
    auto wait() { return m.lock_shared(); }
    void got() {}
    void wake() { m.unlock(); }
    void check(bool got) {
        EXPECT_EQ(m.try_lock(), !got);
        if (got) {
            m.unlock_shared();
        } else {
            m.unlock();
        }
    }
};

/// Sends a different number in each round; `Room` is the capacity.
template <std::size_t Room>
struct recv_scenario {
    std::unique_ptr<channel<std::unique_ptr<int>>> ch =
        Room == 1000 ? std::make_unique<channel<std::unique_ptr<int>>>(unbounded)
                     : std::make_unique<channel<std::unique_ptr<int>>>(Room);
    int round = 0;
    void prepare() { ++round; }
    auto wait() { return ch->recv(); }
    void got(std::optional<std::unique_ptr<int>> value) {
        ASSERT_TRUE(value);
        EXPECT_EQ(**value, round);
    }
    void wake() { EXPECT_TRUE(ch->try_send(std::make_unique<int>(round))); }
    void check(bool got) {
        auto rest = ch->try_recv();
        ASSERT_EQ(rest.has_value(), !got);
        if (rest) {
            EXPECT_EQ(**rest, round);
        }
        EXPECT_FALSE(ch->try_recv());
    }
};

/// Receiving from a closed channel.
struct closed_recv_scenario {
    std::optional<channel<int>> ch;
    void prepare() { ch.emplace(1); }
    auto wait() { return ch->recv(); }
    void got(std::optional<int> value) { EXPECT_FALSE(value); }
    void wake() { ch->close(); }
    void check(bool) { EXPECT_TRUE(ch->is_closed()); }
};

struct send_scenario {
    channel<std::unique_ptr<int>> ch{1};
    int round = 0;
    void prepare() {
        ++round;
        ASSERT_TRUE(ch.try_send(std::make_unique<int>(-1)));
    }
    auto wait() { return ch.send(std::make_unique<int>(round)); }
    void got() {}
    void wake() {
        auto first = ch.try_recv();
        ASSERT_TRUE(first);
        EXPECT_EQ(**first, -1);
    }
    void check(bool got) {
        auto rest = ch.try_recv();
        if (got || rest) { // a destroyed frame cannot tell whether its value was taken
            ASSERT_TRUE(rest);
            EXPECT_EQ(**rest, round);
        }
        EXPECT_FALSE(ch.try_recv());
    }
};

struct oneshot_scenario {
    std::optional<oneshot<int>> o;
    void prepare() { o.emplace(); }
    auto wait() { return o->recv(); }
    void got(std::optional<int> value) { EXPECT_EQ(value, 7); }
    void wake() { EXPECT_TRUE(o->send(7)); }
    void check(bool got) { EXPECT_EQ(o->try_recv().has_value(), !got); }
};

struct broadcast_scenario {
    broadcast<int> b{4};
    broadcast<int>::receiver r = b.subscribe();
    int round = 0;
    void prepare() { ++round; }
    auto wait() { return r.recv(); }
    void got(std::optional<int> value) { EXPECT_EQ(value, round); }
    void wake() { EXPECT_TRUE(b.send(round)); }
    void check(bool got) { EXPECT_EQ(r.try_recv().has_value(), !got); }
};

using scenarios =
    ::testing::Types<mutex_scenario, guard_scenario, semaphore_scenario, auto_event_scenario,
                     event_scenario, event_value_scenario, latch_scenario, wait_group_scenario,
                     barrier_scenario, writer_scenario, reader_scenario, recv_scenario<1>,
                     recv_scenario<3>, recv_scenario<1000>, closed_recv_scenario, send_scenario,
                     oneshot_scenario, broadcast_scenario>;

template <class S>
inline constexpr bool gives_nothing =
    std::is_void_v<decltype(std::declval<S&>().wait().operator co_await().await_resume())>;

/// Returns true if the wait succeeded, false if it was cancelled.
template <class S>
task<bool> waits(S& s) {
    try {
        if constexpr (gives_nothing<S>) {
            co_await s.wait();
            s.got();
        } else {
            s.got(co_await s.wait());
        }
        co_return true;
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled) << e.what();
    }
    co_return false;
}

/// The same for a frame that is destroyed explicitly.
template <class S>
coil_test::manual waits_to_be_destroyed(S& s, bool& got) {
    if constexpr (gives_nothing<S>) {
        co_await s.wait();
        got = true;
        s.got();
    } else {
        auto&& result = co_await s.wait();
        got = true;
        s.got(std::forward<decltype(result)>(result));
    }
}

} // namespace sync_test
