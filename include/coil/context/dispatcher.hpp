#pragma once

#include <coil/base/std_function.hpp>

#include <atomic>
#include <cstddef>

namespace coil {

class runtime;

/// Selects the context for a new top-level task of a runtime: returns an index, which is taken
/// modulo runtime::size(). Called on the spawning thread, possibly by several threads concurrently.
///
///     runtime rt{runtime_options{.dispatcher = [](const runtime&) { return std::size_t{0}; }}};
using dispatcher_function = std::function<std::size_t(const runtime&)>;

/// Selects each context in turn. This is the default, because it is the cheapest and suffices for
/// tasks of equal cost.
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

/// Selects the context with the fewest tasks, including tasks on their way to it. For tasks with
/// very different lifetimes. Ties are broken in rotation.
class least_loaded {
public:
    std::size_t operator()(const runtime& contexts) noexcept;

private:
    round_robin first_;
};

} // namespace coil
