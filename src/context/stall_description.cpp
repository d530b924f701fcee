#include "stall_description.hpp"

#include "spawn_place.hpp"

#include <coil/core/backtrace.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>
#include <utility>

namespace coil {

namespace detail {

namespace {

/// Whether the entry is the loop's function that resumes coroutines; the frames further out do not
/// matter.
bool is_loop(const backtrace_entry& entry) noexcept {
    return entry.function.find("coil::detail::event_loop::run_") != std::string::npos;
}

/// Whether the function is between the loop and the coroutine, as some are without optimization.
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

/// The first line, without its end.
std::string summary(const stall_report& report) {
    using kind = stall_report::kind;
    const std::string time = duration_text(report.duration);
    std::string text =
        "coil: " + std::string(report.what == kind::full_pool ? "pool " : "context ");
    text += report.where + ": ";
    switch (report.what) {
    case kind::long_turn:
        text += report.has_ended ? "a coroutine blocked the thread for "
                                 : "a coroutine has blocked the thread for ";
        return text + time;
    case kind::await_loop:
        text += report.has_ended ? "a task awaited for " : "a task has awaited for ";
        return text + time + " without suspending";
    case kind::late_resumption:
        return text + "a ready coroutine waited for " + time;
    case kind::late_timer:
        return text + "timers fired " + time + " late";
    case kind::full_pool:
        return text + "calls have waited for a free thread for " + time;
    }
    return text;
}

} // namespace

std::string detail::ending_line(const stall_report& report) {
    std::string text = summary(report) + " in all";
    if (report.longest > report.duration) {
        text += " (longest here: " + duration_text(report.longest) + ")";
    }
    if (!report.task.empty()) {
        text += ", task '" + report.task + "'";
    }
    if (!report.stack.empty()) {
        text += ", in ";
        append_to(text, report.stack.back());
    }
    return text + "\n";
}

std::string to_string(const stall_report& report) {
    std::string text = summary(report);
    if (report.times > 1) {
        text += " (" + std::to_string(report.times) + " times)";
    }
    if (report.longest > report.duration) {
        text += ", the longest " + duration_text(report.longest);
    }
    text += '\n';
    if (!report.task.empty() || report.spawned_at) {
        text += "  task";
        detail::write_name_and_place(report.task, report.spawned_at ? &*report.spawned_at : nullptr,
                                     [&text](std::string_view part) { text += part; });
        text += '\n';
    }
    append_list(text, "stack", report.stack);
    append_list(text, "awaits", report.awaits);
    return text;
}

} // namespace coil
