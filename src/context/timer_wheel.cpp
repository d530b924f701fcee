#include <coil/context/detail/timer_wheel.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace coil::detail {

namespace {

/// Empties a slot and returns its timers in arming order (slots are filled at the head).
template <class Level>
timer_node* take(Level& where, std::int64_t index) noexcept {
    const std::size_t i = static_cast<std::size_t>(index) % where.slot.size();
    where.used[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    timer_node* newest = where.slot[i];
    where.slot[i] = nullptr;
    timer_node* oldest = nullptr;
    while (newest != nullptr) {
        timer_node* following = newest->next;
        newest->next = oldest;
        if (oldest != nullptr) {
            oldest->link = &newest->next;
        }
        oldest = newest;
        newest = following;
    }
    return oldest;
}

} // namespace

bool timer_wheel::allocate() noexcept {
    wheel_.reset(new (std::nothrow) wheel);
    return static_cast<bool>(wheel_);
}

void timer_wheel::clear() noexcept {
    const auto empty = [this](auto& level) noexcept {
        for (timer_node*& head : level.slot) {
            for (timer_node* node = std::exchange(head, nullptr); node != nullptr;
                 node = node->next) {
                node->link = nullptr;
                --size_;
            }
        }
    };
    if (size_ > 0) {
        empty(wheel_->ticks);
        for (auto& level : wheel_->higher) {
            empty(level);
        }
    }
}

void timer_wheel::insert(timer_node& node) noexcept {
    const std::int64_t tick = std::max(node.tick(), current_);
    const std::int64_t distance = tick - current_;
    if (distance < std::int64_t{1} << level0_bits) {
        put(wheel_->ticks, tick, node);
        next_event_ = std::min(next_event_, tick);
        return;
    }
    // Selects the level on which the timer is less than a revolution away, counted in slots. The
    // slot that contains current_ has been distributed, and is distributed again only after a
    // revolution.
    constexpr std::int64_t farthest_slot = (1 << level_bits) - 1;
    std::size_t level = 0;
    int shift = level0_bits;
    while (level + 1 < higher_levels && (tick >> shift) - (current_ >> shift) > farthest_slot) {
        ++level;
        shift += level_bits;
    }
    // Beyond the last level's reach a timer waits in the farthest slot, from which it is inserted
    // again.
    const std::int64_t index = std::min(tick >> shift, (current_ >> shift) + farthest_slot);
    put(wheel_->higher[level], index, node);
    next_event_ = std::min(next_event_, index << shift);
}

void timer_wheel::unlink(timer_node& node) noexcept {
    timer_node** link = node.link;
    node.unlink();
    // The last timer of a tick: clear the slot's bit, so that the loop does not wake up without a
    // timer. (A higher slot keeps its bit: distributing nothing is harmless and rare.)
    auto& ticks = wheel_->ticks;
    timer_node** begin = ticks.slot.data();
    if (*link == nullptr && link >= begin && link < begin + ticks.slot.size()) {
        const auto i = static_cast<std::size_t>(link - begin);
        ticks.used[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    }
}

/// Processes tick `current_`: distributes the higher slots that begin there, and returns the timers
/// that are due, in arming order.
timer_node* timer_wheel::advance() noexcept {
    int shift = level0_bits;
    for (auto& level : wheel_->higher) {
        if ((current_ & ((std::int64_t{1} << shift) - 1)) != 0) {
            break;
        }
        for (timer_node* node = take(level, current_ >> shift); node != nullptr;) {
            timer_node* following = node->next;
            insert(*node);
            node = following;
        }
        shift += level_bits;
    }
    timer_node* due = take(wheel_->ticks, current_);
    ++current_;
    next_event_ = current_;
    return due;
}

/// The first tick, from `current_` on, at which a timer is due or a higher slot is distributed.
std::int64_t timer_wheel::find_next_event() const noexcept {
    std::int64_t next = never;
    const auto& ticks = wheel_->ticks;
    const std::size_t step =
        ticks.distance_to_used(static_cast<std::size_t>(current_) % ticks.slot.size());
    if (step < ticks.slot.size()) {
        next = current_ + static_cast<std::int64_t>(step);
    }
    int shift = level0_bits;
    for (const auto& level : wheel_->higher) {
        // The slot that contains current_ was distributed when it began, unless it begins right
        // now.
        const std::int64_t first = (current_ + (std::int64_t{1} << shift) - 1) >> shift;
        const std::size_t n = level.slot.size();
        const std::size_t s = level.distance_to_used(static_cast<std::size_t>(first) % n);
        if (s < n) {
            next = std::min(next, (first + static_cast<std::int64_t>(s)) << shift);
        }
        shift += level_bits;
    }
    return next;
}

} // namespace coil::detail
