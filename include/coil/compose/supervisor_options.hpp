#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/compose/failure_handler.hpp>

#include <cstddef>
#include <limits>

namespace coil {

/// Options of a supervisor.
struct supervisor_options {
    /// Called for each child that fails. Default: the exception goes to the context's
    /// on_unhandled_exception. A child that ends with std::errc::operation_canceled after it was
    /// asked to stop has not failed.
    failure_handler on_failure{};
    /// The maximum number of running children; spawn() of another one waits until one has ended.
    std::size_t max_children = std::numeric_limits<std::size_t>::max();
};

/// How often and after which delay a failed child is restarted: the delay grows from
/// `initial_delay` by `factor` up to `max_delay`, and is reset to `initial_delay` after an attempt
/// that has lasted longer than `reset_after`.
struct restart_options {
    std::chrono::nanoseconds initial_delay = std::chrono::milliseconds(10);
    std::chrono::nanoseconds max_delay = std::chrono::seconds(10);
    double factor = 2;
    std::chrono::nanoseconds reset_after = std::chrono::seconds(60);
    /// The number of attempts after the first. The failure of the last attempt is the child's
    /// result.
    unsigned max_restarts = ~0U;
};

} // namespace coil
