#include "stall_places.hpp"

#include <algorithm>
#include <utility>

namespace coil::detail {

namespace {

/// Keeps the longer of the two reports, with its stack, and the duration of the new one.
void add(stalls_of_place& so_far, const stall_report& report) {
    if (report.duration > so_far.longest.duration) {
        const std::uint64_t times = so_far.longest.times;
        so_far.longest = report;
        so_far.longest.times = times;
    }
    so_far.last = report.duration;
}

} // namespace

/// The entry of a place. If there are too many places, the one whose last stall is the oldest is
/// forgotten; if even that one still limits the rate of reports, new places share an entry.
stall_places::entries::iterator stall_places::at(const std::string& place, std::int64_t now_ns,
                                                 std::int64_t interval_ns) {
    if (places_.size() < most_places || places_.contains(place)) {
        return places_.try_emplace(place).first;
    }
    const auto oldest =
        std::min_element(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
            return a.second.so_far.found_ns < b.second.so_far.found_ns;
        });
    const entry& forgotten = oldest->second;
    if (forgotten.held_back || forgotten.so_far.lasting != 0 ||
        now_ns - forgotten.last_ns < interval_ns) {
        return places_.try_emplace("elsewhere").first;
    }
    places_.erase(oldest);
    return places_.try_emplace(place).first;
}

std::optional<stall_report> stall_places::note(stall_report&& report, const std::string& place,
                                               std::uint64_t run, std::int64_t now_ns,
                                               std::int64_t interval_ns, reported_stall* to) {
    const std::scoped_lock lock(mutex_);
    auto& [key, here] = *at(place, now_ns, interval_ns);
    add(here.so_far, report);
    here.so_far.longest.times += here.so_far.found_ns != 0 ? 1 : 0; // it begins with 1
    here.so_far.found_ns = now_ns;
    report.longest = here.so_far.longest.duration;
    report.times = here.held_back ? here.held_back->times + 1 : 1;
    here.run = run;
    const bool is_passed_on = now_ns - here.last_ns >= interval_ns;
    ++last_number_;
    if (to != nullptr) {
        *to = {.place = key, .number = last_number_, .is_passed_on = is_passed_on};
        ++here.so_far.lasting;
    }
    held_back_ -= here.held_back ? 1 : 0;
    here.held_back.reset();
    if (is_passed_on) {
        here.last_ns = now_ns;
        return std::move(report);
    }
    here.held_back = std::move(report);
    here.held_number = last_number_;
    ++held_back_;
    return std::nullopt;
}

std::optional<stall_report> stall_places::end(const reported_stall& stall, stall_report&& report) {
    const std::scoped_lock lock(mutex_);
    const auto found = places_.find(stall.place);
    report.has_ended = true;
    report.times = 1;
    report.longest = report.duration;
    if (found != places_.end()) {
        entry& here = found->second;
        add(here.so_far, report);
        here.so_far.longest.has_ended = true;
        here.so_far.lasting -= here.so_far.lasting > 0 ? 1 : 0;
        report.longest = here.so_far.longest.duration;
        if (here.held_back && here.held_number == stall.number) {
            here.held_back->duration = report.duration;
            here.held_back->longest = report.longest;
            here.held_back->has_ended = true;
        }
    }
    return stall.is_passed_on ? std::optional(std::move(report)) : std::nullopt;
}

std::optional<stall_report> stall_places::take_due(std::uint64_t run, std::int64_t now_ns,
                                                   std::int64_t interval_ns,
                                                   reported_stall& lasting) {
    const std::scoped_lock lock(mutex_);
    for (auto& [place, here] : places_) {
        if (here.run == run && here.held_back && now_ns - here.last_ns >= interval_ns) {
            here.last_ns = now_ns;
            --held_back_;
            lasting.is_passed_on = lasting.is_passed_on || here.held_number == lasting.number;
            return std::exchange(here.held_back, std::nullopt);
        }
    }
    return std::nullopt;
}

std::vector<stalls_of_place> stall_places::all() const {
    std::vector<stalls_of_place> some;
    {
        const std::scoped_lock lock(mutex_);
        some.reserve(places_.size());
        for (const auto& [place, here] : places_) {
            some.push_back(here.so_far);
        }
    }
    std::sort(some.begin(), some.end(), [](const stalls_of_place& a, const stalls_of_place& b) {
        return a.longest.duration > b.longest.duration;
    });
    return some;
}

} // namespace coil::detail
