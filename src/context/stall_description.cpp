#include "stall_description.hpp"

#include <coil/core/backtrace.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>
#include <utility>

namespace coil {

namespace detail {

namespace {

/// The function of the loop that resumes coroutines; what is below it on the stack does not matter.
bool is_loop(const backtrace_entry& entry) noexcept {
    return entry.function.find("coil::detail::event_loop::run_") != std::string::npos;
}

/// Without optimization, the functions between the loop and the coroutine.
bool is_resume(const backtrace_entry& entry) noexcept {
    return entry.function.starts_with("coil::detail::resume(") ||
           entry.function.find("coroutine_handle<void>::resume()") != std::string::npos;
}

} // namespace

std::string describe(const stall_sample& sample, stall_report& report) {
    bool has_loop = false;
    for (std::size_t i = 0; i < sample.stack_size && !has_loop; ++i) {
        backtrace_entry entry = find_symbol(sample.stack[i]);
        has_loop = is_loop(entry);
        if (!has_loop) {
            report.stack.push_back(std::move(entry));
        }
    }
    while (has_loop && report.stack.size() > 1 && is_resume(report.stack.back())) {
        report.stack.pop_back();
    }
    const running_task& task = sample.task;
    for (std::size_t i = task.awaits_count; i > 0; --i) {
        backtrace_entry entry = find_symbol(task.awaits[i - 1]);
        if (!is_internal(entry)) {
            report.awaits.push_back(std::move(entry));
        }
    }
    report.task.assign(task.name.data(), task.name_size);
    if (task.has_spawned_at) {
        report.spawned_at = task.spawned_at;
    }
    if (!has_loop || report.stack.empty()) { // the symbols were stripped, or the stack is deep
        return report.awaits.empty() ? report.where : report.awaits.front().function;
    }
    const backtrace_entry& coroutine = report.stack.back();
    const bool is_innermost = report.stack.size() == 1; // then it runs, and its position changes
    return coroutine.module + ":" +
           (is_innermost && !coroutine.function.empty() ? coroutine.function
                                                        : std::to_string(coroutine.offset));
}

} // namespace detail

namespace {

std::string duration_text(std::chrono::nanoseconds time) {
    char text[32];
    const double milliseconds = static_cast<double>(time.count()) / 1e6;
    std::snprintf(text, sizeof text, milliseconds < 10 ? "%.1f ms" : "%.0f ms", milliseconds);
    return text;
}

void append_list(std::string& text, std::string_view title,
                 const std::vector<backtrace_entry>& list) {
    if (list.empty()) {
        return;
    }
    text += "  ";
    text += title;
    text += ":\n";
    std::size_t number = 0;
    for (const backtrace_entry& entry : list) {
        text += "    #" + std::to_string(number++) + " ";
        detail::append_to(text, entry);
        text += '\n';
    }
}

} // namespace

std::string to_string(const stall_report& report) {
    using kind = stall_report::kind;
    const std::string time = duration_text(report.duration);
    std::string text =
        "coil: " + std::string(report.what == kind::full_pool ? "pool " : "context ");
    text += report.where + ": ";
    switch (report.what) {
    case kind::long_turn:
        text += "a coroutine has blocked the thread for " + time;
        break;
    case kind::await_loop:
        text += "a task has awaited for " + time + " without suspending";
        break;
    case kind::late_resumption:
        text += "a ready coroutine waited for " + time;
        break;
    case kind::late_timer:
        text += "timers fired " + time + " late";
        break;
    case kind::full_pool:
        text += "calls have waited for a free thread for " + time;
        break;
    }
    if (report.times > 1) {
        text += " (" + std::to_string(report.times) + " times)";
    }
    text += '\n';
    if (!report.task.empty() || report.spawned_at) {
        text += "  task '" + report.task + "'";
        if (report.spawned_at) {
            text += std::string(" spawned at ") + report.spawned_at->file_name() + ":" +
                    std::to_string(report.spawned_at->line());
        }
        text += '\n';
    }
    append_list(text, "stack", report.stack);
    append_list(text, "awaits", report.awaits);
    return text;
}

} // namespace coil
