// Construction and destruction of a loop, and exceptions that no task receives.

#include "event_loop_enter.hpp"
#include "failure_report.hpp"
#include "spawn_place.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/backtrace.hpp>
#include <coil/core/detail/asymmetric_fence.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/exception_chain.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace coil::detail {

event_loop::event_loop(io_context& context, const io_context_options& options)
    : ring_(options, metrics_), submissions_(ring_, options.max_in_flight),
      cancellations_(ring_, metrics_), context_(context), options_(options),
      parker_(ring_, inbox_, meter_, metrics_, options.idle, options.timer_slack) {
    prepare_heavy_fence_if_cheap();
}

event_loop::~event_loop() {
    leave_list();
    discard_messages();
    event_loop* const outer = std::exchange(current_loop, this);
    ring_.close();
    deliver_inbox(); // posted by threads that found the ring still open
    {
        const loop_shutdown::as_active ending(shutdown_);
        functions_.call_all(*this);
    }
    timers_.clear(); // only timers of eager operations that have ended are left
    current_loop = outer;
}

std::chrono::steady_clock::time_point event_loop::now() noexcept {
    return ring_.is_open() ? ring_->now() : std::chrono::steady_clock::now();
}

// ---- exceptions

namespace {

/// Writes " (spawned at FILE:LINE, in FUNCTION [MODULE+OFFSET])", as far as known. The function is
/// left out if the task has both a name and a place, or if there is no memory to look it up, for
/// example because of the std::bad_alloc that is reported. The first look-up reads the symbols of
/// the program's file, which takes some time.
void describe(task_label task, char* to, std::size_t size) noexcept {
    std::string function;
    try {
        if ((task.name.empty() || task.spawned_at == nullptr) && task.function != nullptr) {
            append_to(function, find_symbol(task.function));
        }
    } catch (...) {
        function.clear();
    }
    char place[512] = "";
    if (task.spawned_at != nullptr) {
        write_spawn_place(*task.spawned_at,
                          [&place, used = std::size_t{0}](std::string_view text) mutable {
                              used += text.copy(place + used, sizeof place - 1 - used);
                          });
    }
    if (place[0] != 0 || !function.empty()) {
        std::snprintf(to, size, " (%s%s%.1024s)", place,
                      function.empty() ? ""
                      : place[0] != 0  ? ", in "
                                       : "in ",
                      function.c_str());
    }
}

/// Whether the exception's chain may be looked up. Not while the exception is being handled: then a
/// function threw it, not a coroutine, and a chain that is found would belong to an earlier
/// exception at the same address.
bool has_left_tasks(const std::exception_ptr& error) noexcept {
    return std::current_exception() != error;
}

/// Prints the coroutines that the exception has left on this thread. A single one is not printed if
/// the line already contains the task's name or function: looking it up would delay the loop.
void print_chain(const exception_chain& chain, const task_label& task) noexcept {
    const std::size_t kept = std::min(chain.size, exception_chain::most);
    if (chain.size > 1 || (chain.size == 1 && task.name.empty() && task.function == nullptr)) {
        print_functions("awaits", {chain.functions.data(), kept});
        if (chain.size > kept) {
            std::fprintf(stderr, "    and %zu more\n", chain.size - kept);
        }
    }
}

/// Prints "coil: CONTEXT: task 'NAME': an unhandled exception: WHAT (...)", then the chain of
/// awaits through which the exception has propagated.
void print_unhandled(const char* context, const std::exception_ptr& error,
                     task_label task) noexcept {
    char place[2048] = "";
    describe(task, place, sizeof place);
    const auto print = [&](const char* before_what, const char* what) {
        std::fprintf(stderr, "coil: %s%s%.*s%s: an unhandled exception%s%s%s\n", context,
                     task.name.empty() ? "" : ": task '", static_cast<int>(task.name.size()),
                     task.name.data(), task.name.empty() ? "" : "'", before_what, what, place);
    };
    const exception_chain chain = has_left_tasks(error) ? chain_of(error) : exception_chain{};
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        print(": ", e.what());
    } catch (...) {
        print(" of unknown type", "");
    }
    print_chain(chain, task);
}

} // namespace

void event_loop::report_unhandled(std::exception_ptr error, task_label task) noexcept {
    ++metrics_.unhandled_exceptions;
    if (options_.on_unhandled_exception) {
        options_.on_unhandled_exception(std::move(error));
    } else {
        print_unhandled(options_.name.empty() ? "io_context" : options_.name.c_str(), error, task);
    }
}

void report_unhandled(std::exception_ptr error, task_label task) noexcept {
    if (current_loop != nullptr) {
        current_loop->report_unhandled(std::move(error), task);
    } else {
        print_unhandled("outside of a context", error, task);
    }
}

} // namespace coil::detail
