#pragma once

#include <coil/context/watchdog.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace coil::detail {

/// Limits the rate of reports: one per place and interval. What is held back is counted, and
/// reported when the interval is over.
class stall_places {
public:
    /// Returns the report if it is to be passed on now. `run` is the number of the run() that it is
    /// about.
    [[nodiscard]] std::optional<stall_report> note(stall_report&& report, const std::string& place,
                                                   std::uint64_t run, std::int64_t now_ns,
                                                   std::int64_t interval_ns);
    /// Returns a report of this run that was held back, and whose interval is over.
    [[nodiscard]] std::optional<stall_report> take_due(std::uint64_t run, std::int64_t now_ns,
                                                       std::int64_t interval_ns);

    /// Whether a report is held back.
    [[nodiscard]] bool holds_back() const noexcept { return held_back_ > 0; }

private:
    struct entry {
        std::uint64_t run = 0;                // of the last report
        std::int64_t last_ns = INT64_MIN / 2; // when one was passed on
        std::optional<stall_report> held_back{};
    };
    /// Further places share one entry.
    static constexpr std::size_t most_places = 256;

    std::map<std::string, entry> places_;
    std::size_t held_back_ = 0;
};

} // namespace coil::detail
