// Functions that need the loop of the calling thread, and reports of misuse.

#include "failure_report.hpp"

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/move_awaiter.hpp>
#include <coil/context/run.hpp>
#include <coil/core/async_generator.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <dlfcn.h>

namespace coil::detail {

void end_without_context() noexcept {
    std::fputs(
        "coil: an await, or co_spawn(), spawn() or this_context(), outside of an io_context: "
        "this thread runs none. Run the coroutine with coil::run(task), or with "
        "io_context::co_spawn(task) and io_context::run(); one that runs on another executor "
        "awaits this in a task of a context: co_await on(context, task).\n",
        stderr);
    print_running_task();
    std::abort();
}

void end_with_misuse(const char* sentence) noexcept {
    std::fprintf(stderr, "coil: %s\n", sentence);
    print_running_task();
    std::abort();
}

/// Whether the object lies within a loaded program or library, as static variables do.
static bool is_static(const void* object) noexcept {
    ::Dl_info module{};
    return ::dladdr(object, &module) != 0;
}

/// Reports misuse unless the object is static: std::exit() destroys static variables while tasks
/// still exist, which never run again.
void end_with_destroyed(const void* object, const char* sentence) noexcept {
    if (!is_static(object)) {
        end_with_misuse(sentence);
    }
}

void resume_later(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
    required_loop().make_ready(node, coroutine);
}

void take_back(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
    if (current_loop != nullptr) {
        current_loop->withdraw(node, coroutine);
    }
}

void check_may_run() {
    if (current_loop != nullptr) {
        throw std::system_error(
            std::make_error_code(std::errc::resource_deadlock_would_occur),
            "coil: run() would block a context's thread; co_await the task there");
    }
}

void refuse_to_move() {
    throw std::logic_error("coil: resume_on() or schedule() in a child of when_all, when_any, "
                           "scope or timeout, or in a task of a run_loop: it stays where that is. "
                           "Use co_await on(executor, task), or ctx.spawn(task) and await its "
                           "join_handle there");
}

} // namespace coil::detail
