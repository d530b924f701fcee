// Messages about mistakes that a program survives.

#include <coil/context/event_loop.hpp>
#include <coil/core/backtrace.hpp>
#include <coil/core/detail/debug_reports.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

namespace coil::detail {

namespace {

/// Returns true for the first call with this function.
bool is_first_of(const void* function) {
    static std::mutex mutex;
    static auto* const seen = new std::vector<const void*>; // usable during the program's exit
    const std::scoped_lock lock(mutex);
    if (std::ranges::find(*seen, function) != seen->end()) {
        return false;
    }
    seen->push_back(function);
    return true;
}

std::string function_of(const void* frame) {
    std::string text;
    append_to(text, find_symbol(resume_function(frame)));
    return text;
}

} // namespace

bool is_cleaning_up() noexcept {
    return destructions_of_frames > 0 || std::uncaught_exceptions() > 0 ||
           (current_loop != nullptr && current_loop->is_ending());
}

void report_unrun_task(const void* frame) noexcept try {
    if (is_cleaning_up() || !is_first_of(resume_function(frame))) {
        return;
    }
    std::fprintf(stderr,
                 "coil: a task was destroyed and has never run: %s. Did you forget to co_await or "
                 "spawn it?\n",
                 function_of(frame).c_str());
} catch (...) { // NOLINT(*-empty-catch): no memory for the message
}

void report_no_stop_token(const void* frame, std::string_view type) noexcept try {
    if (const auto at = type.find("P = "); at != std::string_view::npos) {
        type.remove_prefix(at + 4);
        type = type.substr(0, type.find_first_of(";]"));
    }
    std::fprintf(
        stderr,
        "coil: %s awaits an operation, but its promise, %.*s, has no stop token: a stop, a "
        "timeout() or a shutdown of its callers does not reach what it awaits. Give the "
        "promise a member `coil::inplace_stop_token stop_token() const noexcept` that "
        "returns the token of the awaiting coroutine's promise, or {} if it must not be "
        "stopped.\n",
        function_of(frame).c_str(), static_cast<int>(type.size()), type.data());
} catch (...) { // NOLINT(*-empty-catch): no memory for the message
}

} // namespace coil::detail
