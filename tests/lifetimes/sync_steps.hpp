#pragma once

#include "lifetimes/world.hpp"

#include <memory>
#include <utility>

// Steps that wait for other tasks.

namespace lifetime_test {

template <class T>
T& one_of(std::array<T, world::several>& all, const step& s) {
    return all.at(s.index % all.size());
}

inline task<> linger(const step& s) {
    if (s.variant % 3 == 0) {
        co_await coil::yield();
    } else if (s.variant % 3 == 1) {
        co_await coil::sleep_for(short_time(s));
    }
}

inline task<> mutex_step(world& w, const step& s) {
    const witness here(w);
    const auto guard = co_await one_of(w.mutexes, s).lock_guard();
    const witness locked(w);
    co_await linger(s);
}

inline task<> shared_mutex_step(world& w, const step& s) {
    const witness here(w);
    auto& m = one_of(w.shared_mutexes, s);
    if (s.variant % 2 == 0) {
        const auto guard = co_await m.lock_guard();
        co_await linger(s);
    } else {
        const auto guard = co_await m.shared_lock_guard();
        co_await linger(s);
    }
}

inline task<> semaphore_step(world& w, const step& s) {
    const witness here(w);
    auto& permits = one_of(w.semaphores, s);
    if (s.variant % 2 == 0) {
        const auto permit = co_await permits.acquire_guard();
        co_await linger(s);
        co_return;
    }
    co_await permits.acquire();
    struct back {
        explicit back(coil::counting_semaphore<>& p) noexcept : permits(p) {}
        back(const back&) = delete;
        ~back() { permits.release(); }
        coil::counting_semaphore<>& permits;
    };
    const back at_end(permits);
    co_await linger(s);
}

inline task<> condition_variable_step(world& w, const step& s) {
    const witness here(w);
    auto& condition = one_of(w.conditions, s);
    switch (s.variant % 4) {
    case 0:
        condition.notify_one();
        break;
    case 1:
        condition.notify_all();
        break;
    default: {
        auto& m = one_of(w.mutexes, s);
        const auto guard = co_await m.lock_guard();
        if (s.variant % 3 == 0) {
            co_await condition.wait(m, [n = 0]() mutable { return ++n > 2; });
        } else {
            co_await condition.wait(m);
        }
    }
    }
}

inline task<> event_step(world& w, const step& s) {
    const witness here(w);
    switch (s.variant % 8) {
    case 6:
        if (!w.value_is_set.exchange(true)) {
            w.value.set(1);
        }
        break;
    case 7:
        co_await w.value.wait();
        break;
    case 0:
        one_of(w.events, s).set();
        break;
    case 1:
        one_of(w.events, s).reset();
        break;
    case 2:
        one_of(w.auto_events, s).set();
        break;
    case 3:
        co_await one_of(w.auto_events, s).wait();
        break;
    default:
        co_await one_of(w.events, s).wait();
    }
}

inline task<> latch_step(world& w, const step& s) {
    const witness here(w);
    if (s.variant % 2 == 0 && w.latch_count.fetch_sub(1) > 0) {
        if (s.index % 2 == 0) {
            w.gate.count_down();
        } else {
            co_await w.gate.arrive_and_wait();
        }
    } else {
        co_await w.gate.wait();
    }
}

inline task<> barrier_step(world& w, const step&) {
    const witness here(w);
    co_await w.meeting.arrive_and_wait();
}

/// Two tasks that the group waits for; if a shutdown destroys them, their destructors count down.
inline task<> wait_group_step(world& w, const step& s) {
    const witness here(w);
    auto& group = one_of(w.groups, s);
    struct part {
        explicit part(coil::wait_group& g) noexcept : group(&g) { g.add(1); }
        part(part&& other) noexcept : group(std::exchange(other.group, nullptr)) {}
        ~part() {
            if (group != nullptr) {
                group->done();
            }
        }
        coil::wait_group* group;
    };
    struct work {
        static task<> run(world& around, const step& plan, part mine) {
            const part until_here(std::move(mine));
            co_await play(around, plan.bodies.front());
        }
    };
    w.context(s.context).co_spawn(work::run(w, s, part(group)));
    co_await group.wait();
}

inline task<> channel_step(world& w, const step& s) {
    const witness here(w);
    auto& c = w.channels.at(s.index % w.channels.size());
    switch (s.variant % 7) {
    case 0:
    case 1:
        co_await c.send(world::element(w));
        break;
    case 2: {
        auto got = c.try_recv();
        break;
    }
    case 3:
        if (s.variant % 5 == 0) {
            c.close();
        }
        break;
    default: {
        auto got = co_await c.recv();
        co_await linger(s);
    }
    }
}

/// The other end is on any context, and may end without sending.
inline task<> oneshot_step(world& w, const step& s) {
    const witness here(w);
    auto both = std::make_shared<coil::oneshot<world::element>>();
    struct work {
        static task<> run(world& around, const step& plan,
                          std::shared_ptr<coil::oneshot<world::element>> to) {
            const witness local(around);
            co_await play(around, plan.bodies.front());
            if (plan.variant % 5 != 0) {
                to->send(world::element(around));
            } else {
                to->close();
            }
        }
    };
    w.context(s.context).co_spawn(work::run(w, s, both));
    auto got = co_await both->recv();
}

inline task<> broadcast_step(world& w, const step& s) {
    const witness here(w);
    if (s.variant % 2 == 0) {
        w.news.send(static_cast<int>(s.variant));
        co_return;
    }
    auto receiver = w.news.subscribe();
    for (unsigned n = s.index % 3; n > 0; --n) {
        co_await receiver.recv();
    }
}

} // namespace lifetime_test
