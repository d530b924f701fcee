#include <coil/core/backtrace.hpp>
#include <coil/core/detail/promise_base.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace coil {

namespace {

/// Longer chains are truncated.
constexpr std::size_t most_entries = 1000;

} // namespace

std::string to_string(const task_backtrace& trace) {
    std::string text;
    if (!trace.name.empty()) {
        text += "task '" + trace.name + "'\n";
    }
    std::size_t number = 0;
    for (const backtrace_entry& entry : trace.entries) {
        text += "#" + std::to_string(number++) + " ";
        detail::append_to(text, entry);
        text += '\n';
    }
    return text;
}

void detail::append_to(std::string& text, const backtrace_entry& entry) {
    char offset[32];
    std::snprintf(offset, sizeof offset, "+0x%zx]", static_cast<std::size_t>(entry.offset));
    text += entry.function.empty() ? "?" : entry.function;
    text += " [";
    text += std::string_view(entry.module).substr(entry.module.rfind('/') + 1);
    text += offset;
}

bool detail::is_internal(const backtrace_entry& entry) noexcept {
    return entry.function.find("coil::detail::callback_coroutine<") != std::string::npos;
}

std::vector<backtrace_entry> detail::symbols_of(std::span<const void* const> positions) {
    std::vector<backtrace_entry> entries;
    for (const void* const position : positions) {
        backtrace_entry entry = find_symbol(position);
        if (!is_internal(entry)) {
            entries.push_back(std::move(entry));
        }
    }
    return entries;
}

namespace this_task::detail {

void raw_backtrace::begin(const void* frame) {
    functions.push_back(coil::detail::resume_function(frame));
}

void raw_backtrace::follow(coil::detail::promise_base& promise) {
    coil::detail::promise_base* at = &promise;
    while (functions.size() < most_entries) {
        if (!at->is_root()) {
            functions.push_back(coil::detail::resume_function(at->coroutine.address()));
            if (at->parent == nullptr) {
                // The awaiting coroutine is not a task.
                const coil::detail::promise_base* const root = at->root();
                name = root != nullptr && root->is_root() ? root->owner().name() : name;
                return;
            }
            at = at->parent;
            continue;
        }
        const coil::detail::task_owner& owner = at->owner();
        if (name.empty()) {
            name = owner.name();
        }
        at = owner.awaiting_task();
        if (at == nullptr) {
            return;
        }
        functions.push_back(coil::detail::resume_function(coil::detail::frame_of(*at)));
    }
}

task_backtrace backtrace_awaiter::await_resume() const {
    task_backtrace trace;
    trace.name = trace_.name;
    trace.entries = coil::detail::symbols_of(trace_.functions);
    return trace;
}

} // namespace this_task::detail

} // namespace coil
