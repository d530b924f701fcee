#pragma once

#include "lifetimes/world.hpp"

#include <memory>
#include <utility>
#include <vector>

// Steps that consist of other tasks on the same context.

namespace lifetime_test {

inline std::vector<task<>> tasks_of(world& w, const step& s) {
    std::vector<task<>> all;
    for (const body& each : s.bodies) {
        all.push_back(play(w, each));
    }
    return all;
}

inline task<> call_step(world& w, const step& s) {
    const witness here(w);
    co_await play(w, s.bodies.front());
}

inline task<> throw_step(world& w, const step&) {
    const witness here(w);
    throw planned();
    co_return;
}

inline task<> scope_step(world& w, const step& s) {
    const witness here(w);
    coil::scope children(co_await coil::this_task::stop_token());
    for (const body& each : s.bodies) {
        children.spawn(play(w, each));
    }
    if (s.variant % 4 == 0) {
        co_await coil::yield();
        children.cancel();
    }
    co_await children.join();
}

/// A scope that is left without join(), or destroyed by a function that the context runs.
inline task<> scope_left_step(world& w, const step& s) {
    const witness here(w);
    coil::scope children;
    for (const body& each : s.bodies) {
        children.spawn(play(w, each));
    }
    if (s.variant % 2 == 0) {
        co_await coil::sleep_for(short_time(s));
    } else {
        co_await coil::yield();
    }
}

inline task<> scope_reset_step(world& w, const step& s) {
    const witness here(w);
    const auto children = std::make_shared<std::unique_ptr<coil::scope>>();
    *children = std::make_unique<coil::scope>();
    coil::any_executor(coil::this_context())
        .execute([here, weak = std::weak_ptr<std::unique_ptr<coil::scope>>(children)] {
            if (const auto still = weak.lock()) {
                still->reset();
            }
        });
    for (const body& each : s.bodies) {
        (*children)->spawn(play(w, each));
    }
    co_await coil::sleep_for(short_time(s));
}

/// Children that do not stop each other, at most two at a time.
inline task<> supervisor_step(world& w, const step& s) {
    const witness here(w);
    coil::supervisor children{
        {.on_failure = [here](const std::exception_ptr&) {}, .max_children = 2}};
    for (const body& each : s.bodies) {
        if (s.variant % 2 == 0) {
            static_cast<void>(co_await children.spawn(play(w, each), "child"));
        } else {
            static_cast<void>(children.spawn(play(w, each)));
        }
    }
    switch (s.index % 4) {
    case 0:
        break; // left without a join
    case 1:
        children.cancel();
        co_await children.join();
        break;
    case 2:
        co_await children.join(short_time(s));
        break;
    default:
        co_await children.join();
    }
}

inline task<> child_handle_step(world& w, const step& s) {
    const witness here(w);
    coil::scope children;
    auto first = children.spawn(play(w, s.bodies.front()));
    if (s.bodies.size() > 1) {
        children.spawn(play(w, s.bodies.back()));
    }
    if (s.variant % 3 == 0) {
        co_await coil::yield();
        first.cancel();
    }
    if (s.variant % 2 == 0) {
        co_await first;
    }
    co_await children.join();
}

inline task<> for_each_concurrent_step(world& w, const step& s) {
    const witness here(w);
    co_await coil::for_each_concurrent(s.bodies, 1 + s.variant % 3,
                                       [&w](const body& each) { return play(w, each); });
}

inline task<> deadline_step(world& w, const step& s) {
    const witness here(w);
    co_await coil::with_deadline(std::chrono::steady_clock::now() + s.time,
                                 play(w, s.bodies.front()));
}

inline task<> when_all_step(world& w, const step& s) {
    const witness here(w);
    if (s.variant % 2 == 0) {
        co_await coil::when_all(tasks_of(w, s));
    } else {
        co_await coil::when_all(play(w, s.bodies.front()), coil::sleep_for(short_time(s)));
    }
}

inline task<> when_any_step(world& w, const step& s) {
    const witness here(w);
    if (s.variant % 2 == 0) {
        co_await coil::when_any(tasks_of(w, s));
    } else {
        co_await coil::when_any(play(w, s.bodies.front()), coil::sleep_for(s.time));
    }
}

inline task<> time_limit_step(world& w, const step& s) {
    const witness here(w);
    co_await coil::timeout(play(w, s.bodies.front()), s.time);
}

inline task<> shield_step(world& w, const step& s) {
    const witness here(w);
    co_await coil::shield(play(w, s.bodies.front()));
}

inline task<> with_token_step(world& w, const step& s) {
    const witness here(w);
    coil::inplace_stop_source source;
    if (s.variant % 3 == 0) {
        source.request_stop();
    }
    co_await coil::with_stop_token(play(w, s.bodies.front()), source.get_token());
}

inline coil::generator<int> counts(world& w, unsigned n) {
    const witness here(w);
    for (unsigned i = 0; i < n; ++i) {
        co_yield static_cast<int>(i);
    }
}

inline task<> generator_step(world& w, const step& s) {
    const witness here(w);
    for (const int n : counts(w, 4)) {
        if (n == static_cast<int>(s.variant % 6)) {
            break;
        }
        if (on_a_context()) {
            co_await coil::yield();
        }
    }
}

inline coil::async_generator<int> plays(world& w, const step& s) {
    const witness here(w);
    int n = 0;
    for (const body& each : s.bodies) {
        const witness local(w);
        co_await play(w, each);
        co_yield n++;
    }
}

inline task<> async_generator_step(world& w, const step& s) {
    const witness here(w);
    auto all = plays(w, s);
    while (auto n = co_await all.next()) {
        if (*n == static_cast<int>(s.variant % 4)) {
            break;
        }
    }
}

} // namespace lifetime_test
