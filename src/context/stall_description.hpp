#pragma once

#include "stall_sample.hpp"

#include <coil/context/options.hpp>
#include <coil/context/watchdog.hpp>

#include <string>

namespace coil::detail {

[[nodiscard]] inline std::string name_of(const io_context_options& options) {
    return options.name.empty() ? "io_context" : options.name;
}

/// Fills in the stack and the task. Returns the place by which reports are counted: the position in
/// the coroutine that runs.
[[nodiscard]] std::string describe(const stall_sample& sample, stall_report& report);

} // namespace coil::detail
