#include "spin_pause.hpp"

#include <coil/context/detail/parker.hpp>
#include <coil/core/detail/frame_allocator.hpp>

#include <algorithm>
#include <cstdint>
#include <ctime>

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

/// The events are completions and messages. A message that ended a sleep counts once, as the
/// completion of the read of the wake-up descriptor.
void parker::check_experiment() noexcept {
    const std::int64_t now = ring_.now_ns();
    if (!experiment_.is_sample_due(now)) {
        return;
    }
    std::timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    constexpr std::int64_t wake_up_ns = 2'000; // about what it costs the thread that sends it
    const auto wake_ups = static_cast<std::int64_t>(metrics_.wake_ups_sent.get());
    experiment_.add({
        .now_ns = now,
        .cpu_ns = used.tv_sec * 1'000'000'000 + used.tv_nsec + wake_ups * wake_up_ns,
        .events = metrics_.completions.get() + metrics_.wake_ups_elided.get(),
        .bytes = transferred_,
    });
    metrics_.spin_experiments.set(experiment_.results());
    metrics_.spins_suppressed.set(experiment_.usual() == idle_way::spin ? 0 : 1);
    metrics_.sleeps_batched.set(experiment_.usual() == idle_way::batch ? 1 : 0);
}

/// Whether there is an event, and not only IORING_SQ_TASKRUN. The kernel queues task work before it
/// sets the flag, and the work may be done in between: then the flag stays set without work, and
/// must not keep a context from sleeping.
bool parker::has_events() noexcept {
    if (!ring_->has_completions() && inbox_.empty()) {
        ring_.enter(0, nullptr, 0);
    }
    return ring_->has_completions() || !inbox_.empty();
}

/// Polls memory a few times, between two readings of the clock.
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

/// Polls once before it reads the clock: for two contexts that exchange messages, the reading would
/// take most of a turn.
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
            meter_.resume(now); // reading the clock again would delay the event's handler
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
