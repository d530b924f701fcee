// Construction and destruction of a loop, and exceptions that no task receives.

#include "event_loop_enter.hpp"

#include <coil/context/event_loop.hpp>
#include <coil/context/join_handle.hpp>

#include <cstdio>
#include <exception>
#include <source_location>
#include <utility>

namespace coil::detail {

event_loop::event_loop(io_context& context, const io_context_options& options)
    : ring_(options, metrics_), submissions_(ring_, options.max_in_flight),
      cancellations_(ring_, metrics_), context_(context), options_(options),
      parker_(ring_, inbox_, meter_, metrics_, options.idle) {}

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
    timers_.clear(); // those of eager operations that have ended
    current_loop = outer;
}

// ---- exceptions

namespace {

/// Prints "coil: CONTEXT: task 'NAME': an unhandled exception: WHAT (spawned at FILE:LINE)".
/// Allocates nothing: the exception may be a std::bad_alloc.
void print_unhandled(const char* context, const std::exception_ptr& error,
                     task_label task) noexcept {
    char place[1024] = "";
    if (task.spawned_at != nullptr) {
        std::snprintf(place, sizeof place, " (spawned at %s:%u)", task.spawned_at->file_name(),
                      static_cast<unsigned>(task.spawned_at->line()));
    }
    const auto print = [&](const char* before_what, const char* what) {
        std::fprintf(stderr, "coil: %s%s%.*s%s: an unhandled exception%s%s%s\n", context,
                     task.name.empty() ? "" : ": task '", static_cast<int>(task.name.size()),
                     task.name.data(), task.name.empty() ? "" : "'", before_what, what, place);
    };
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        print(": ", e.what());
    } catch (...) {
        print(" of unknown type", "");
    }
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
