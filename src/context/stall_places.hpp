#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/watchdog.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace coil::detail {

/// A long turn that has been noted and has not ended.
struct reported_stall {
    std::string place{};      // the key of its entry
    std::uint64_t number = 0; // 0: none
    bool is_passed_on = false;
};

/// The stalls at one place.
struct stalls_of_place {
    stall_report longest;            ///< `times` is their number so far
    std::chrono::nanoseconds last{}; ///< the duration of the last one
    std::int64_t found_ns = 0;       ///< when the last one was found, on the steady clock
    unsigned lasting = 0;            ///< the number of long turns in progress
};

/// Keeps what was reported, by place, and limits the rate of reports: one per place and interval.
/// Stalls that are not reported immediately are counted, and reported when the interval is over. At
/// most most_places places are kept: those with the most recent stalls.
///
/// all() may be called from any thread; everything else belongs to the watchdog's thread.
class stall_places {
public:
    /// Returns the report if it is to be passed on now. `run` is the number of the run() in which
    /// the stall was found. For a turn that is still in progress, fills in `to` for end().
    [[nodiscard]] std::optional<stall_report> note(stall_report&& report, const std::string& place,
                                                   std::uint64_t run, std::int64_t now_ns,
                                                   std::int64_t interval_ns,
                                                   reported_stall* to = nullptr);
    /// Called when a turn has ended; `report` contains its full duration. Returns the report if it
    /// is to be passed on, which it is if the report at its beginning was. Otherwise stores the
    /// duration in the report that is held back.
    [[nodiscard]] std::optional<stall_report> end(const reported_stall& stall,
                                                  stall_report&& report);
    /// Returns a report of this run that was held back, and whose interval is over. `lasting` is
    /// the turn of this run that is in progress.
    [[nodiscard]] std::optional<stall_report> take_due(std::uint64_t run, std::int64_t now_ns,
                                                       std::int64_t interval_ns,
                                                       reported_stall& lasting);

    /// Whether a report is held back.
    [[nodiscard]] bool holds_back() const noexcept { return held_back_ > 0; }

    /// The place with the longest stall first.
    [[nodiscard]] std::vector<stalls_of_place> all() const;

private:
    struct entry {
        std::uint64_t run = 0;                // the run of the last report
        std::int64_t last_ns = INT64_MIN / 2; // when a report was last passed on
        std::optional<stall_report> held_back{};
        std::uint64_t held_number = 0;
        stalls_of_place so_far{};
    };
    static constexpr std::size_t most_places = 256;

    using entries = std::map<std::string, entry>;

    entries::iterator at(const std::string& place, std::int64_t now_ns, std::int64_t interval_ns);

    mutable std::mutex mutex_;
    entries places_;
    std::size_t held_back_ = 0;
    std::uint64_t last_number_ = 0;
};

/// The reply of the admin socket: a JSON document with all stalls.
[[nodiscard]] std::string to_json(const std::vector<stalls_of_place>& all, bool is_watching,
                                  std::int64_t now_ns);

} // namespace coil::detail
