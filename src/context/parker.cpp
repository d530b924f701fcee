#include "spin_pause.hpp"

#include <coil/context/detail/parker.hpp>
#include <coil/core/frame_allocator.hpp>

#include <algorithm>
#include <cstdint>

namespace coil::detail {

void parker::wait_for_more() noexcept {
    std::int64_t now = ring_.now_ns();
    meter_.lap(now);
    const std::int64_t end = now + history_.coalesce_ns();
    do {
        spin_pause();
    } while (inbox_.empty() && (now = ring_.now_ns()) < end);
    meter_.resume(now);
}

/// Whether there is more than the kernel's flag that it has work to finish. The kernel lists the
/// work first and raises the flag then, when the work may be done already: the flag may be set with
/// nothing behind it until there is work again, and must not keep a context from sleeping.
bool parker::has_events() noexcept {
    if (!ring_->has_completions() && inbox_.empty()) {
        ring_.enter(0, nullptr, 0);
    }
    return ring_->has_completions() || !inbox_.empty();
}

/// A few polls of memory, between two readings of the clock.
[[gnu::always_inline]] inline bool parker::spin_once() noexcept {
    constexpr int polls = 16;
    for (int i = 0; i < polls; ++i) {
        if (ring_->has_completions() || ring_->needs_enter() || !inbox_.empty()) {
            return has_events();
        }
        spin_pause();
    }
    return false;
}

/// The clock is not read when there is something to do at once: between contexts that answer each
/// other it would be most of what a turn takes.
bool parker::spin(std::int64_t until_ns) noexcept {
    ++metrics_.spins;
    if (spin_once()) {
        lap_if_due();
        return true;
    }
    std::int64_t now = ring_.now_ns();
    meter_.lap(now);
    const std::int64_t limit = std::min(until_ns, now + history_.policy().limit().count());
    do {
        if (spin_once()) {
            meter_.resume(now); // not read again: the other side would wait for that
            return true;
        }
        now = ring_.now_ns();
    } while (now < limit);
    meter_.resume(now);
    return false;
}

std::int64_t parker::trim_after_peak(std::int64_t until_ns) noexcept {
    constexpr std::int64_t a_while_ns = 100'000'000;
    const std::int64_t now = ring_.now_ns();
    if (trim_due_ns_ == 0) {
        trim_due_ns_ = now + a_while_ns;
    } else if (now >= trim_due_ns_) {
        trim_due_ns_ = 0;
        trim_frame_cache();
        return until_ns;
    }
    return std::min(until_ns, trim_due_ns_);
}

} // namespace coil::detail
