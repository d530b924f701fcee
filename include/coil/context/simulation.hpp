#pragma once

#include <coil/context/timer_wheel.hpp>

#include <cstdint>

namespace coil::detail {

class event_loop;

/// How a loop stands after a turn that did not wait.
struct turn_report {
    enum class kind : std::uint8_t {
        busy,     ///< there is something to do now
        idle,     ///< not before a completion, a message or `until_ns`
        finished, ///< no task is left, nor an operation; a message may bring new ones
    };
    kind what;
    std::int64_t until_ns = timer_wheel::never; ///< by the clock of the loop's kernel
};

/// Work that another thread would do, and that is done on the only thread there is.
class simulated_work {
public:
    virtual void run_simulated() noexcept = 0;

protected:
    simulated_work() noexcept = default;
    ~simulated_work() = default;
    simulated_work(const simulated_work&) = default;
    simulated_work& operator=(const simulated_work&) = default;
};

/// Whoever drives loops by event_loop::turn(), all of them on one thread. Only that thread calls.
class simulation {
public:
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;

    /// `work` is called once, between turns, unless take_back() is called before.
    virtual void run_later(simulated_work& work) = 0;
    /// True: it will not be called.
    [[nodiscard]] virtual bool take_back(simulated_work& work) noexcept = 0;
    /// Everybody but `loop` goes on until `loop` has mail.
    virtual void let_others_run_until_mail(event_loop& loop) noexcept = 0;

protected:
    simulation() noexcept = default;
    ~simulation() = default;
};

} // namespace coil::detail
