#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/compose/detail/child_group.hpp>
#include <coil/context/context_clock.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace coil {

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

namespace detail {

/// Receives the failures that run_restarting() reports.
struct failure_reporter {
    void* self;
    std::string name;
    void (*report)(void* self, std::exception_ptr error, std::string_view name) noexcept;
};

/// The delay after a delay of `before`.
[[nodiscard]] std::chrono::nanoseconds longer_delay(std::chrono::nanoseconds before,
                                                    const restart_options& options) noexcept;

template <class Make>
task<> run_restarting(Make make, restart_options options, failure_reporter reporter) {
    const inplace_stop_token token = co_await this_task::stop_token();
    std::chrono::nanoseconds delay = options.initial_delay;
    for (unsigned restarts = 0;; ++restarts) {
        const auto begin = context_clock::now();
        std::exception_ptr error;
        try {
            co_await make();
            co_return;
        } catch (...) {
            error = std::current_exception();
        }
        if (token.stop_requested() || restarts == options.max_restarts) {
            std::rethrow_exception(error);
        }
        reporter.report(reporter.self, coil::detail::exchange(error, nullptr), reporter.name);
        if (context_clock::now() - begin > options.reset_after) {
            delay = options.initial_delay;
        }
        if (co_await sleep_for(delay) != 0) {
            co_return; // asked to stop
        }
        delay = longer_delay(delay, options);
    }
}

} // namespace detail

} // namespace coil
