#pragma once

#include <coil/context/detail/timer_wheel.hpp>
#include <coil/core/detail/queue.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coil::detail {

class event_loop;

/// The state of a loop after a turn that did not wait.
struct turn_report {
    enum class kind : std::uint8_t {
        busy,     ///< it has something to do now
        idle,     ///< nothing to do before a completion, a message or `until_ns`
        finished, ///< no task and no operation is left; a message may bring new ones
    };
    kind what = kind::busy;
    std::int64_t until_ns = timer_wheel::never; ///< by the clock of the loop's backend
};

/// Drives loops by event_loop::turn(), one at a time.
class sim_driver {
public:
    sim_driver(const sim_driver&) = delete;
    sim_driver& operator=(const sim_driver&) = delete;
    virtual ~sim_driver() = default;

    /// Simulates another thread: calls `run` once with `work`, between turns, unless take_back() is
    /// called first.
    virtual void run_later(queue_node& work, void (*run)(queue_node&)) = 0;
    /// Returns true if the call was still pending and is now cancelled.
    [[nodiscard]] virtual bool take_back(queue_node& work) noexcept = 0;
    /// A loop has checked for messages and is about to sleep: simulates what other threads do at
    /// that moment.
    virtual void let_others_act() noexcept = 0;
    /// Simulates a wake-up of a sleeping loop by another thread: it gets a turn.
    virtual void wake(event_loop& loop) noexcept = 0;
    /// `loop` waits in the middle of its turn: runs other loops until it has messages. Also returns
    /// if none of them makes progress; if that lasts, the program terminates with a message.
    virtual void run_others_until_message(event_loop& loop) noexcept = 0;
    /// The numeric addresses of the host with that name, the preferred one first; empty if there is
    /// none.
    [[nodiscard]] virtual std::vector<std::string> addresses_of(const std::string& host) = 0;

protected:
    sim_driver() noexcept = default;
};

/// The simulation whose turn or work this thread is running, or null.
constinit inline thread_local sim_driver* current_sim_driver = nullptr;

/// In a simulation, the loop that requested the work being run by run_later(); the work's system
/// calls and clock are those of this loop. Null if the loop was destroyed meanwhile, or if no such
/// work is being run.
constinit inline thread_local event_loop* asked_by = nullptr;

} // namespace coil::detail
