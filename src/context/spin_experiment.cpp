#include <coil/base/minmax.hpp>
#include <coil/context/detail/spin_experiment.hpp>

namespace coil::detail {

void spin_experiment::add(const sample& now) noexcept {
    switch (phase_) {
    case phase::none:
        present_way_ = {};
        other_way_ = {};
        begin_window(now, phase::before);
        return;
    case phase::before:
        if (end_window(now, present_way_)) {
            spins_ = !spins_;
            begin_window(now, phase::other);
        } else {
            pause(now);
        }
        return;
    case phase::other: {
        const bool is_valid = end_window(now, other_way_);
        spins_ = !spins_;
        if (is_valid) {
            begin_window(now, phase::after);
        } else {
            pause(now);
        }
        return;
    }
    case phase::after:
        if (end_window(now, present_way_)) {
            conclude(now);
        } else {
            pause(now);
        }
        return;
    }
}

void spin_experiment::begin_window(const sample& now, phase next) noexcept {
    phase_ = next;
    begin_ = now;
    excluded_ns_ = 0;
    next_sample_ns_ = now.now_ns + window_ns;
}

/// Returns false if the window says nothing: too little has happened, or too long ago.
bool spin_experiment::end_window(const sample& now, measured& to) noexcept {
    const std::int64_t wall = now.now_ns - begin_.now_ns - excluded_ns_;
    const std::uint64_t events = now.events - begin_.events;
    to.wall_ns += wall;
    to.cpu_ns += now.cpu_ns - begin_.cpu_ns;
    to.events += events;
    to.bytes += now.bytes - begin_.bytes;
    return events >= least_events && wall > 0 && wall < 4 * window_ns;
}

void spin_experiment::pause(const sample& now) noexcept {
    phase_ = phase::none;
    next_sample_ns_ = now.now_ns + pause_ns_;
}

void spin_experiment::conclude(const sample& now) noexcept {
    ++results_;
    const bool should_spin =
        spins_ ? pays(present_way_, other_way_) : pays(other_way_, present_way_);
    if (should_spin == spins_) {
        contradictions_ = 0;
        pause(now);
        pause_ns_ = min(2 * pause_ns_, longest_pause_ns);
        return;
    }
    if (++contradictions_ >= experiments_to_change) {
        contradictions_ = 0;
        spins_ = should_spin;
    }
    pause_ns_ = shortest_pause_ns;
    phase_ = phase::none;
    next_sample_ns_ = now.now_ns; // another experiment, at once
}

/// Per second, spinning must get at least a tenth more done: less is hardly worth a processor.
/// Completions alone do not show that. A stream that spins receives the same bytes in more pieces.
bool spin_experiment::pays(const measured& spinning, const measured& parking) noexcept {
    const auto rate = [](std::uint64_t amount, const measured& in) {
        return static_cast<double>(amount) / static_cast<double>(in.wall_ns);
    };
    constexpr double gain = 1.1;
    const bool counts_bytes = spinning.bytes >= spinning.events && parking.bytes >= parking.events;
    const std::uint64_t done_spinning = counts_bytes ? spinning.bytes : spinning.events;
    const std::uint64_t done_parking = counts_bytes ? parking.bytes : parking.events;
    if (rate(done_spinning, spinning) >= gain * rate(done_parking, parking)) {
        return true;
    }
    return static_cast<double>(spinning.cpu_ns) * static_cast<double>(done_parking) <=
           static_cast<double>(parking.cpu_ns) * static_cast<double>(done_spinning);
}

} // namespace coil::detail
