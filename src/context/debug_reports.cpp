// Messages about mistakes that a program survives.

#include <coil/context/detail/event_loop.hpp>
#include <coil/core/backtrace.hpp>
#include <coil/core/detail/debug_reports.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include <pthread.h>

namespace coil::detail {

namespace {

constinit std::mutex seen_mutex;
constinit std::vector<const void*>* seen = nullptr; // usable during the program's exit

[[maybe_unused]] const int fork_handler = ::pthread_atfork(
    [] { seen_mutex.lock(); }, [] { seen_mutex.unlock(); }, [] { seen_mutex.unlock(); });

std::string function_of(const void* frame) {
    std::string text;
    append_to(text, find_symbol(resume_function(frame)));
    return text;
}

} // namespace

bool is_first_report_of(const void* function) {
    const std::scoped_lock lock(seen_mutex);
    if (seen == nullptr) {
        seen = new std::vector<const void*>;
    }
    if (std::ranges::find(*seen, function) != seen->end()) {
        return false;
    }
    seen->push_back(function);
    return true;
}

bool is_cleaning_up() noexcept {
    return destructions_of_frames > 0 || std::uncaught_exceptions() > 0 ||
           (current_loop != nullptr && current_loop->is_ending());
}

void report_unrun_task(const void* frame) noexcept try {
    if (is_cleaning_up() || !is_first_report_of(resume_function(frame))) {
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

void report_length_as_flags(int flags) noexcept {
    constexpr std::size_t most = 16;
    static constinit std::array<std::atomic<int>, most> reported{};
    for (std::atomic<int>& place : reported) {
        int before = 0;
        if (place.compare_exchange_strong(before, flags, std::memory_order_relaxed)) {
            std::fprintf(stderr,
                         "coil: the flags of a send or recv are %d, which may be a length. The "
                         "argument after the buffer is the flags; the length is part of the "
                         "buffer: send({data, %d}).\n",
                         flags, flags);
            return;
        }
        if (before == flags) {
            return;
        }
    }
}

void report_foreign_buffer() noexcept {
    std::fputs("coil: a registered buffer is used on another context than the one that it is "
               "registered with: the call gives -EFAULT. Create a registered_buffers object on "
               "each context that uses the memory.\n",
               stderr);
}

} // namespace coil::detail
