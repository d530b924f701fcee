#pragma once

#include <coil/context/timer_wheel.hpp>
#include <coil/core/queue.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coil::detail {

class event_loop;

/// How a loop stands after a turn that did not wait.
struct turn_report {
    enum class kind : std::uint8_t {
        busy,     ///< there is something to do now
        idle,     ///< not before a completion, a message or `until_ns`
        finished, ///< no task is left, nor an operation; a message may bring new ones
    };
    kind what = kind::busy;
    std::int64_t until_ns = timer_wheel::never; ///< by the clock of the loop's kernel
};

/// Whoever drives loops by event_loop::turn(), all of them on one thread. Only that thread calls.
class simulation {
public:
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;
    virtual ~simulation() = default;

    /// What another thread would do: `run` is called once with `work`, between turns, unless
    /// take_back() is called before.
    virtual void run_later(queue_node& work, void (*run)(queue_node&)) = 0;
    /// True: it was to be called, and will not.
    [[nodiscard]] virtual bool take_back(queue_node& work) noexcept = 0;
    /// `loop` has looked for messages and is about to sleep: what other threads do just then.
    virtual void let_others_act() noexcept = 0;
    /// What another thread does to a loop that sleeps: it is to have a turn.
    virtual void wake(event_loop& loop) noexcept = 0;
    /// All but `loop` go on until `loop` has mail. When nothing of them can go on, the world ends
    /// with a sentence; with `may_fail` it returns.
    virtual void let_others_run_until_mail(event_loop& loop, bool may_fail) noexcept = 0;
    /// The numeric addresses of the host of that name, the preferred first; none: nobody has it.
    [[nodiscard]] virtual std::vector<std::string> addresses_of(const std::string& host) = 0;

protected:
    simulation() noexcept = default;
};

/// Whose turn, or work, this thread is in; null: nobody's.
constinit inline thread_local simulation* current_simulation = nullptr;

/// In a simulation, the loop that has asked for the work which is being done: its world is what the
/// work finds. Null: it has gone meanwhile, or this is no such work.
constinit inline thread_local event_loop* asked_by = nullptr;

} // namespace coil::detail
