#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace coil {

class runtime;

/// Chooses the context for a new top-level task of a runtime: gives an index below its size()
/// (anything larger counts modulo that). Called on the thread that spawns, by several at a time.
///
///     runtime rt{runtime_options{.dispatcher = [](const runtime&) { return std::size_t{0}; }}};
using dispatcher_function = std::function<std::size_t(const runtime&)>;

/// To each context in turn. The default: no other costs less, and equal tasks need no other.
class round_robin {
public:
    round_robin() noexcept = default;
    round_robin(const round_robin& other) noexcept
        : next_(other.next_.load(std::memory_order_relaxed)) {}
    round_robin& operator=(const round_robin&) = delete;
    ~round_robin() = default;

    std::size_t operator()(const runtime&) noexcept {
        return next_.fetch_add(1, std::memory_order_relaxed);
    }

private:
    std::atomic<std::size_t> next_{0};
};

/// To the context with the fewest tasks, those that are on their way to it included. For tasks that
/// live for very different times. Among equals, in turn.
class least_loaded {
public:
    std::size_t operator()(const runtime& contexts) noexcept;

private:
    round_robin first_;
};

} // namespace coil
