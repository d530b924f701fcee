#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/compose/detail/child_group.hpp>
#include <coil/compose/supervisor_options.hpp>
#include <coil/context/context_clock.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <cerrno>
#include <exception>
#include <new>
#include <source_location>
#include <string>

namespace coil::detail {

/// Receives the failures that run_restarting() reports.
struct failure_reporter {
    void* self;
    std::string name;
    std::source_location where;
    void (*report)(void* self, std::exception_ptr error, const task_label& child) noexcept;
};

/// The delay that follows a delay of `before`.
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
        reporter.report(reporter.self, coil::detail::exchange(error, nullptr),
                        {reporter.name, reporter.where.line() == 0 ? nullptr : &reporter.where});
        if (context_clock::now() - begin > options.reset_after) {
            delay = options.initial_delay;
        }
        if (const int slept = co_await sleep_for(delay); slept == -ECANCELED) {
            co_return; // asked to stop
        } else if (slept != 0) {
            throw std::bad_alloc(); // no memory for the timer
        }
        delay = longer_delay(delay, options);
    }
}

} // namespace coil::detail
