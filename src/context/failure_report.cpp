#include "failure_report.hpp"

#include "running_task.hpp"
#include "spawn_place.hpp"
#include "unwound.hpp"

#include <coil/base/failure_hook.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/backtrace.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// The thread that prints, or 0.
constinit std::atomic<::pid_t> printing_thread{0};

[[maybe_unused]] const bool is_hooked = [] {
    failure_hook = &print_running_task;
    // The child of a fork() does not have that thread.
    ::pthread_atfork(nullptr, nullptr, [] { printing_thread = 0; });
    return true;
}();

/// Whether this thread prints.
bool begin_printing() noexcept {
    const auto self = static_cast<::pid_t>(::syscall(SYS_gettid));
    ::pid_t other = 0;
    if (printing_thread.compare_exchange_strong(other, self)) {
        return true;
    }
    if (other != self) {
        const std::timespec limit{10, 0}; // the printing thread ends the process much sooner
        ::nanosleep(&limit, nullptr);
    }
    return false;
}

/// The code addresses on this thread's stack, the innermost first.
struct machine_stack {
    std::array<const void*, 64> positions{};
    std::size_t size = 0;

    [[gnu::noinline]] void take() noexcept {
        ::_Unwind_Backtrace(
            [](::_Unwind_Context* frame, void* argument) noexcept {
                auto& self = *static_cast<machine_stack*>(argument);
                if (const unwound at(frame); at.position != nullptr) {
                    self.positions[self.size++] = at.position;
                }
                return self.size < self.positions.size() ? ::_URC_NO_REASON : ::_URC_END_OF_STACK;
            },
            this);
    }
};

/// Whether the function belongs to the report itself. Its frames are the innermost, inside that of
/// the function that has failed.
bool is_of_the_report(const backtrace_entry& entry) noexcept {
    for (const std::string_view name :
         {"machine_stack::take", "::print_all()", "print_running_task", "coil::detail::end_with_",
          "coil::detail::end_without_context", "coil::detail::assertion_failed"}) {
        if (entry.function.find(name) != std::string::npos) {
            return true;
        }
    }
    return false;
}

bool contains(const backtrace_entry& entry, std::string_view text) noexcept {
    return entry.function.find(text) != std::string::npos;
}

/// Whether the stack may contain a loop that resumes a coroutine. True if the symbols that would
/// show it were stripped.
bool may_resume(const std::vector<backtrace_entry>& stack) noexcept {
    bool is_known = false;
    for (const backtrace_entry& entry : stack) {
        if (contains(entry, "event_loop::run_ready") || contains(entry, "event_loop::run_probed") ||
            contains(entry, "event_loop::run_observed")) {
            return true;
        }
        is_known = is_known || contains(entry, "coil::detail::event_loop::");
    }
    return !is_known;
}

void print_entries(const char* title, const std::vector<backtrace_entry>& entries) {
    if (entries.empty()) {
        return;
    }
    std::fprintf(stderr, "  %s:\n", title);
    std::size_t number = 0;
    for (const backtrace_entry& entry : entries) {
        std::string line;
        append_to(line, entry);
        std::fprintf(stderr, "    #%zu %s\n", number++, line.c_str());
    }
}

/// `task 'NAME' spawned at FILE:LINE`, or an empty string if neither is known.
std::string label_of(const running_task& task) {
    std::string text;
    if (task.name_size > 0 || task.has_spawned_at) {
        text = "task";
        write_name_and_place(std::string_view(task.name.data(), task.name_size),
                             task.has_spawned_at ? &task.spawned_at : nullptr,
                             [&text](std::string_view piece) { text += piece; });
    }
    return text;
}

void print_task(const running_task& task) {
    if (const std::string label = label_of(task); !label.empty()) {
        std::fprintf(stderr, "  %s\n", label.c_str());
    }
    std::array<const void*, running_task::most_awaits * 2> chain{};
    std::size_t size = 0;
    for (std::size_t i = task.awaits_count; i > 0; --i) {
        chain[size++] = task.awaits[i - 1];
    }
    for (std::size_t i = 0; i < task.callers_count; ++i) {
        chain[size++] = task.callers[i];
    }
    print_functions("awaits", {chain.data(), size});
}

void print_all() {
    machine_stack stack;
    stack.take();
    std::vector<backtrace_entry> entries = symbols_of({stack.positions.data(), stack.size});
    std::size_t own = 0;
    while (own < entries.size() && is_of_the_report(entries[own])) {
        ++own;
    }
    entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(own));
    running_task task;
    if (current_loop != nullptr && current_loop->is_running() && may_resume(entries)) {
        task.find(current_loop->ready().last_popped().address());
    } else if (const auto root = root_on_executor.load(); root != nullptr) {
        task.find_below(root());
    }
    task.find_callers();
    print_task(task);
    print_entries("stack", entries);
}

} // namespace

std::string describe_suspended(const void* frame) {
    running_task task;
    task.find(frame);
    task.find_callers();
    std::array<const void*, 1 + running_task::most_awaits> chain{resume_function(frame)};
    std::copy_n(task.callers.begin(), task.callers_count, chain.begin() + 1);
    std::string text;
    if (const auto entries = symbols_of({chain.data(), 1 + task.callers_count}); !entries.empty()) {
        text += ", in ";
        append_to(text, entries.front());
    }
    if (const std::string label = label_of(task); !label.empty()) {
        text += ", " + label;
    }
    return text;
}

void print_functions(const char* title, std::span<const void* const> functions) noexcept {
    try {
        print_entries(title, symbols_of(functions));
    } catch (...) { // no memory
        std::fprintf(stderr, "  %s:\n", title);
        for (const void* const function : functions) {
            std::fprintf(stderr, "    %p\n", function);
        }
    }
}

void print_running_task() noexcept {
    if (!begin_printing()) {
        return;
    }
    try {
        print_all();
    } catch (...) { // no memory
        std::fputs("  no memory to look up what runs\n", stderr);
    }
}

} // namespace coil::detail
