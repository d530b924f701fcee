#pragma once

#include <coil/base/std_chrono.hpp>

namespace coil {

/// The steady clock of the context that runs on this thread. In a simulated world (coil::sim) it is
/// the world's clock; everywhere else, including on threads without a context, it is
/// std::chrono::steady_clock. A program that measures time with it can be tested in a simulated
/// world.
///
///     const auto begin = coil::context_clock::now();
///     ...
///     if (coil::context_clock::now() - begin > 5s) ...
///     co_await sleep_until(begin + 10s);
///
/// Its time points are those of steady_clock, so they may be passed to sleep_until(), timeout_at(),
/// with_deadline() and net::connect(), and be compared with this_task::deadline(). Work that a task
/// of a world passes to blocking(), asyncify() or a thread pool sees the world's clock, too.
/// Outside of tasks, a test reads it with world::now().
///
/// Threading: now() may be called on any thread. It costs about as much as steady_clock::now().
struct context_clock {
    using duration = std::chrono::steady_clock::duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::steady_clock::time_point;
    static constexpr bool is_steady = true;

    [[nodiscard]] static time_point now() noexcept;
};

} // namespace coil
