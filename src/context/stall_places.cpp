#include "stall_places.hpp"

#include <utility>

namespace coil::detail {

std::optional<stall_report> stall_places::note(stall_report&& report, const std::string& place,
                                               std::uint64_t run, std::int64_t now_ns,
                                               std::int64_t interval_ns) {
    const bool has_room = places_.size() < most_places || places_.contains(place);
    entry& at = places_[has_room ? place : "elsewhere"];
    report.times = at.held_back ? at.held_back->times + 1 : 1;
    at.run = run;
    if (now_ns - at.last_ns < interval_ns) {
        held_back_ += at.held_back ? 0 : 1;
        at.held_back = std::move(report);
        return std::nullopt;
    }
    at.last_ns = now_ns;
    held_back_ -= at.held_back ? 1 : 0;
    at.held_back.reset();
    return std::move(report);
}

std::optional<stall_report> stall_places::take_due(std::uint64_t run, std::int64_t now_ns,
                                                   std::int64_t interval_ns) {
    for (auto& [place, at] : places_) {
        if (at.run == run && at.held_back && now_ns - at.last_ns >= interval_ns) {
            at.last_ns = now_ns;
            --held_back_;
            return std::exchange(at.held_back, std::nullopt);
        }
    }
    return std::nullopt;
}

} // namespace coil::detail
