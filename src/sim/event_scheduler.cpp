#include "event_scheduler.hpp"

#include <algorithm>
#include <utility>

namespace coil::sim::detail {

void event_scheduler::at(std::int64_t time, object& about, action what, std::uint64_t a,
                         std::uint64_t b) {
    std::size_t place = events_.size();
    if (free_.empty()) {
        events_.push_back({what, ref<object>(&about), a, b});
    } else {
        place = free_.back();
        free_.pop_back();
        events_[place] = {what, ref<object>(&about), a, b};
    }
    queue_.push_back({time, order_++, place});
    std::push_heap(queue_.begin(), queue_.end());
}

void event_scheduler::run_due() {
    while (!queue_.empty() && queue_.front().time <= now_) {
        std::pop_heap(queue_.begin(), queue_.end());
        const std::size_t place = queue_.back().event;
        queue_.pop_back();
        const event next = std::move(events_[place]);
        free_.push_back(place);
        next.what(*next.about, next.a, next.b);
    }
}

} // namespace coil::sim::detail
