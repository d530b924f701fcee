#pragma once

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
};

} // namespace coil::detail
