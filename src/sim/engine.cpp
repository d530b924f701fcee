#include "engine.hpp"

#include <algorithm>
#include <utility>

namespace coil::sim::detail {

void engine::at(std::int64_t time, object& about, action what, std::uint64_t a, std::uint64_t b) {
    events_.push_back({time, order_++, what, ref<object>(&about), a, b});
    std::push_heap(events_.begin(), events_.end());
}

void engine::settle() {
    while (!events_.empty() && events_.front().time <= now_) {
        std::pop_heap(events_.begin(), events_.end());
        const event next = std::move(events_.back());
        events_.pop_back();
        next.what(*next.about, next.a, next.b);
    }
}

} // namespace coil::sim::detail
