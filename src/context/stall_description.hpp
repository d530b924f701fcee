#pragma once

#include "stall_sample.hpp"

#include <coil/context/options.hpp>
#include <coil/context/watchdog.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace coil::detail {

[[nodiscard]] inline std::string name_of(const io_context_options& options) {
    return options.name.empty() ? "io_context" : options.name;
}

/// Fills in the stack and the task. Returns the place by which reports are counted: the position of
/// the coroutine's current call, or its function if it makes none.
[[nodiscard]] std::string describe(const stall_sample& sample, stall_report& report);

/// The line for the second report on a turn, at its end. The first report contained the details.
[[nodiscard]] std::string ending_line(const stall_report& report);

[[nodiscard]] inline stall_report make_report(stall_report::kind what, std::string where,
                                              std::int64_t duration_ns) {
    stall_report report;
    report.what = what;
    report.where = std::move(where);
    report.duration = std::chrono::nanoseconds(duration_ns);
    return report;
}

} // namespace coil::detail
