#pragma once

#include "lifetimes/compose_steps.hpp"

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <sys/epoll.h>

// Steps with groups of tasks over several contexts, and with results that callbacks deliver.

namespace lifetime_test {

inline task<int> counted_play(world& w, const body& b) {
    const witness here(w);
    co_await play(w, b);
    co_return 1;
}

inline task<> task_group_step(world& w, const step& s) {
    const witness here(w);
    coil::task_group<int> group({.max_children = 1 + s.variant % 3},
                                co_await coil::this_task::stop_token());
    for (const body& each : s.bodies) {
        if (s.variant % 2 == 0) {
            co_await group.spawn(counted_play(w, each), "member");
        } else {
            static_cast<void>(group.spawn(counted_play(w, each)));
        }
    }
    if (s.index % 4 == 0) {
        co_return; // the group is destroyed with its children
    }
    if (s.index % 4 == 1) {
        static_cast<void>(co_await coil::when_any(group.next(), coil::sleep_for(short_time(s))));
        group.cancel();
    }
    while (co_await group.next()) {
    }
}

inline task<> parallel_step(world& w, const step& s) {
    const witness here(w);
    std::vector<task<int>> parts;
    for (const body& each : s.bodies) {
        parts.push_back(counted_play(w, each));
    }
    if (s.variant % 2 == 0) {
        static_cast<void>(co_await coil::parallel(std::move(parts)));
    } else {
        static_cast<void>(co_await coil::parallel(std::move(parts), std::plus<>()));
    }
}

inline task<> restarting_step(world& w, const step& s) {
    const witness here(w);
    coil::supervisor children{{.on_failure = [here](const std::exception_ptr&) {}}};
    co_await children.spawn_restarting([&w, &s] { return play(w, s.bodies.front()); },
                                       {.initial_delay = 50us, .max_restarts = s.variant % 3});
    if (s.index % 2 == 0) {
        co_await children.join(short_time(s));
    } else {
        co_await children.join();
    }
}

/// Awaits a callback that a function on any executor calls, or that nothing calls. The latter only
/// on a context: elsewhere, below an async_task, which has no stop token, nothing would end the
/// await. If the executor drops the function, it also drops the completion.
inline task<> callback_step(world& w, const step& s) {
    const witness here(w);
    struct shared {
        std::mutex mutex;
        std::optional<coil::completion<int>> done;
        std::optional<coil::completion<int>> take() {
            const std::scoped_lock lock(mutex);
            return std::exchange(done, std::nullopt);
        }
    };
    struct dropper {
        std::shared_ptr<shared> call;
        explicit dropper(std::shared_ptr<shared> which) noexcept : call(std::move(which)) {}
        dropper(const dropper&) = delete;
        ~dropper() { call->take(); }
    };
    const auto call = std::make_shared<shared>();
    auto initiate = [&w, &s, call, here](coil::completion<int> done) {
        {
            const std::scoped_lock lock(call->mutex);
            call->done.emplace(std::move(done));
        }
        if (s.variant % 4 == 0 && coil::detail::current_loop != nullptr) {
            return; // nothing calls it
        }
        auto ex = w.executor(s.where, s.context);
        ex.execute([here, last = std::make_unique<dropper>(call)] {
            if (auto taken = last->call->take()) {
                taken->set_value(1);
            }
        });
    };
    if (s.variant % 2 == 0) {
        co_await coil::from_callback<int>(std::move(initiate), [call]() noexcept {
            if (auto taken = call->take()) {
                taken->set_stopped();
            }
        });
    } else {
        co_await coil::from_callback<int>(std::move(initiate));
    }
}

inline task<> foreign_loop_step(world& w, const step& s) {
    const witness here(w);
    coil::foreign_loop loop;
    loop.watch(w.pipe(s.index).in, EPOLLIN);
    loop.set_deadline(std::chrono::steady_clock::now() + s.time);
    for (unsigned n = s.variant % 3; n > 0; --n) {
        if (s.index % 2 == 0) {
            loop.interrupt();
        }
        static_cast<void>(co_await loop.wait());
    }
}

inline coil::lookup<int> looked_up(world& w, const int& from) {
    const witness here(w);
    co_await coil::prefetch(&from);
    co_return from + 1;
}

inline task<> interleave_step(world& w, const step& s) {
    const witness here(w);
    std::vector<int> keys(1 + s.variant);
    std::vector<int> results(keys.size());
    const auto look_up = [&w](const int& key) { return looked_up(w, key); };
    co_await coil::async_interleave(1 + s.index, keys, look_up, results);
}

/// blocking() with the default pool, or awaits that walk through the chain of awaits.
inline task<> defaults_step(world& w, const step& s) {
    const witness here(w);
    switch (s.variant % 3) {
    case 0:
        static_cast<void>(co_await coil::this_task::backtrace());
        break;
    case 1:
        static_cast<void>(co_await coil::this_task::deadline());
        break;
    default:
        // A context waits for the call. Other executors do not, and the process's pool outlives
        // those of this program.
        if (on_a_context()) {
            co_await coil::blocking([here] {});
        }
    }
}

} // namespace lifetime_test
