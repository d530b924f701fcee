#pragma once

#include "lifetimes/world.hpp"

#include <memory>
#include <thread>
#include <utility>

// Steps that move to other contexts, executors and threads.

namespace lifetime_test {

inline task<> on_step(world& w, const step& s) {
    const witness here(w);
    const auto ex = w.executor(s.where, s.context);
    co_await coil::on(ex, play(w, s.bodies.front()));
}

/// A chain of tasks, each on another context and in an unjoined scope of the task before it.
inline task<> chain_link(world& w, const step& s, unsigned more) {
    const witness here(w);
    if (more == 0) {
        co_await play(w, s.bodies.front());
        co_return;
    }
    auto goes = [](world& all, const step& which, unsigned n) -> task<> {
        const witness there(all);
        co_await coil::on(all.context(which.context + n), chain_link(all, which, n - 1));
    };
    coil::scope local;
    const auto on_heap = s.variant % 4 == 0 ? std::make_unique<coil::scope>() : nullptr;
    (on_heap ? *on_heap : local).spawn(goes(w, s, more));
    if (on_heap) { // joined: several threads that leave such scopes together may hang
        co_await coil::shield(coil::sleep_for(10ms));
        co_await (*on_heap).join();
    } else {
        co_await coil::sleep_for(s.variant % 3 == 0 ? short_time(s) : 10ms);
    }
}

inline task<> chain_step(world& w, const step& s) {
    const witness here(w);
    co_await chain_link(w, s, 1 + s.index % 6);
}

/// A task on another context creates a scope with the bodies as its children. A younger task, on
/// the scope's context, takes it over, and leaves it without a join.
inline task<> takes_over(world& w, const step& s, std::unique_ptr<coil::scope>& children) {
    const witness here(w);
    const auto mine = std::move(children);
    co_await coil::sleep_for(short_time(s));
}

inline task<> comes_back(world& w, const step& s, coil::io_context& home,
                         std::unique_ptr<coil::scope>& children) {
    const witness here(w);
    co_await coil::on(home, takes_over(w, s, children));
}

inline task<> scope_taken_step(world& w, const step& s) {
    const witness here(w);
    auto& home = coil::this_context();
    auto children = std::make_unique<coil::scope>();
    for (const body& each : s.bodies) {
        children->spawn(play(w, each));
    }
    co_await coil::yield();
    co_await coil::on(w.context(s.context), comes_back(w, s, home, children));
}

inline task<> resume_on_step(world& w, const step& s) {
    const witness here(w);
    if (s.where == place::context && s.variant % 2 == 0) {
        co_await coil::resume_on(w.context(s.context));
    } else if (s.where != place::loop) { // no other task may move to a run_loop
        const auto ex = w.executor(s.where, s.context);
        co_await coil::resume_on(ex);
    }
}

inline task<> schedule_step(world& w, const step& s) {
    const witness here(w);
    if (s.where != place::loop) {
        const auto ex = w.executor(s.where, s.context);
        co_await coil::schedule(ex);
    }
}

inline coil::async_task<void, coil::any_executor>
async_play(coil::executor_arg_t, coil::any_executor, world& w, const step& s) {
    const resident there(w, s.where);
    const witness here(w);
    co_await play(w, s.bodies.front());
}

inline coil::async_task<void, coil::any_executor>
async_chain(coil::executor_arg_t, coil::any_executor, world& w, place where,
            coil::async_task<void, coil::any_executor> before) {
    const resident there(w, where);
    const witness here(w);
    co_await std::move(before);
}

inline task<> async_task_step(world& w, const step& s) {
    const witness here(w);
    const auto ex = w.executor(s.where, s.context);
    auto work = async_play(coil::executor_arg, ex, w, s);
    for (unsigned n = s.index % 4; n > 0; --n) {
        work = async_chain(coil::executor_arg, w.executor(s.where, s.context + n), w, s.where,
                           std::move(work));
    }
    if (s.variant % 4 == 0) {
        work.then([here] {}).catching([here](const std::exception_ptr&) {});
    } else {
        co_await std::move(work);
    }
}

inline task<> asyncify_step(world& w, const step& s) {
    const witness here(w);
    for (unsigned n = s.variant % 4; n > 0; --n) {
        co_await coil::asyncify([here] {});
    }
}

/// The work of a function on another thread: takes a while, observes stops, throws, or ends.
inline void do_for_a_while(const step& s, const coil::inplace_stop_token& token) {
    switch (s.variant % 4) {
    case 0:
        for (int n = 0; n < 50 && !token.stop_requested(); ++n) {
            std::this_thread::sleep_for(50us);
        }
        break;
    case 1:
        std::this_thread::sleep_for(short_time(s));
        break;
    case 2:
        throw planned();
    default:
        break;
    }
}

inline task<> asyncify_on_step(world& w, const step& s) {
    const witness here(w);
    const auto ex = w.executor(s.where == place::here ? place::context : s.where, s.context);
    co_await coil::asyncify(
        [here, &s](const coil::inplace_stop_token& token) {
            if (s.where != place::context) {
                do_for_a_while(s, token);
            }
        },
        ex);
}

inline task<> blocking_step(world& w, const step& s) {
    const witness here(w);
    auto work = [here, &s](const coil::inplace_stop_token& token) { do_for_a_while(s, token); };
    if (w.blocking != nullptr) {
        co_await coil::blocking(*w.blocking, std::move(work));
    }
}

inline task<> join_step(world& w, const step& s) {
    const witness here(w);
    auto handle = w.context(s.context).spawn(play(w, s.bodies.front()));
    switch (s.variant % 5) {
    case 0: { // dropped
        [[maybe_unused]] const auto dropped = std::move(handle);
        break;
    }
    case 1:
        handle.cancel();
        co_await handle;
        break;
    case 2:
        co_await coil::sleep_for(short_time(s));
        handle.cancel();
        break;
    case 3:
        co_await coil::when_any(std::move(handle), coil::sleep_for(short_time(s)));
        break;
    default:
        co_await handle;
    }
}

inline task<> spawn_step(world& w, const step& s) {
    const witness here(w);
    w.context(s.context).co_spawn(play(w, s.bodies.front()));
    co_return;
}

/// A task owned by the run_loop.
inline task<> loop_spawn_step(world& w, const step& s) {
    const witness here(w);
    if (w.loop) {
        w.loop->spawn(play(w, s.bodies.front()));
    }
    co_return;
}

inline task<> post_step(world& w, const step& s) {
    const witness here(w);
    if (s.variant % 2 == 0) {
        w.context(s.context).post([here, &s] { here.of().stir(s.index); });
    } else {
        auto ex = w.executor(s.where == place::here ? place::context : s.where, s.context);
        ex.execute([here, &s] { here.of().stir(s.index); });
    }
    co_return;
}

} // namespace lifetime_test
