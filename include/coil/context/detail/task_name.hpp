#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <utility>

namespace coil::detail {

/// The name of a task. Only the owners of named tasks store one.
struct task_name {
    task_name(std::string given, const std::source_location& where)
        : text(std::move(given)), spawned_at(where) {}

    std::string text;
    std::source_location spawned_at;
    std::int64_t spawned_ns =
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
};

} // namespace coil::detail
