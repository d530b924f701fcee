#include <coil/base/minmax.hpp>
#include <coil/context/detail/spin_experiment.hpp>

namespace coil::detail {

void spin_experiment::add(const sample& now) noexcept {
    if (phase_ == phase::none) {
        usual_ = {};
        opposite_ = {};
        begin_window(now, phase::before);
    } else if (!end_window(now, phase_ == phase::opposite ? opposite_ : usual_)) {
        abandon(now.now_ns);
    } else if (phase_ == phase::after) {
        phase_ = phase::none;
        conclude(now.now_ns);
    } else {
        spins_ = !spins_;
        begin_window(now, phase_ == phase::before ? phase::opposite : phase::after);
    }
}

void spin_experiment::begin_window(const sample& now, phase next) noexcept {
    phase_ = next;
    begin_ = now;
    next_sample_ns_ = now.now_ns + about(window_ns);
}

/// Returns false if the window says nothing: too little has happened in it, or it took too long.
bool spin_experiment::end_window(const sample& now, measured& to) noexcept {
    const std::int64_t wall = now.now_ns - begin_.now_ns;
    const std::uint64_t events = now.events - begin_.events;
    to.wall_ns += wall;
    to.cpu_ns += now.cpu_ns - begin_.cpu_ns;
    to.events += events;
    to.bytes += now.bytes - begin_.bytes;
    return events >= least_events && wall > 0 && wall <= longest_window_ns;
}

void spin_experiment::pause(std::int64_t now_ns, std::int64_t about_ns) noexcept {
    next_sample_ns_ = now_ns + about(about_ns);
}

void spin_experiment::abandon(std::int64_t now_ns) noexcept {
    spins_ = is_in_favour();
    phase_ = phase::none;
    contradictions_ = 0;
    pause(now_ns, pause_ns_);
}

void spin_experiment::was_idle(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    constexpr std::int64_t long_ns = 1'000'000'000;
    if (end_ns - begin_ns >= long_ns) {
        pause_ns_ = shortest_pause_ns; // the next load may be another one
        next_sample_ns_ = min(next_sample_ns_, end_ns + shortest_pause_ns);
    }
    if (is_measuring()) {
        abandon(end_ns);
    }
}

void spin_experiment::conclude(std::int64_t now_ns) noexcept {
    ++results_;
    const bool should_spin = spins_ ? pays(usual_, opposite_) : pays(opposite_, usual_);
    if (should_spin == spins_) {
        contradictions_ = 0;
        pause(now_ns, pause_ns_);
        pause_ns_ = min(2 * pause_ns_, longest_pause_ns);
        return;
    }
    if (++contradictions_ >= experiments_to_change) {
        contradictions_ = 0;
        spins_ = should_spin;
    }
    pause_ns_ = shortest_pause_ns;
    pause(now_ns, repetition_pause_ns);
}

/// A random duration, from half of the given one to half more.
std::int64_t spin_experiment::about(std::int64_t duration_ns) noexcept {
    random_ = random_ * 1'664'525U + 1'013'904'223U;
    return duration_ns / 2 + static_cast<std::int64_t>(random_ >> 16) * (duration_ns >> 16);
}

/// Per second, spinning must get at least a tenth more done: the measurements are noisy, and less
/// is hardly worth a processor. More completions are no gain if they transfer the same bytes per
/// second, as those of a stream do, which a loop that spins receives in smaller pieces.
bool spin_experiment::pays(const measured& spinning, const measured& sleeping) noexcept {
    const auto gain = [&](std::uint64_t measured::* what) {
        return static_cast<double>(spinning.*what) * static_cast<double>(sleeping.wall_ns) /
               (static_cast<double>(sleeping.*what) * static_cast<double>(spinning.wall_ns));
    };
    constexpr double least_gain = 1.1;
    constexpr double same = 0.9;
    const bool have_bytes = spinning.bytes >= spinning.events && sleeping.bytes >= sleeping.events;
    const double bytes = have_bytes ? gain(&measured::bytes) : 0;
    const bool smaller_pieces = bytes > same && bytes < least_gain;
    if (gain(&measured::events) >= least_gain && !smaller_pieces) {
        return true;
    }
    const std::uint64_t done_spinning = smaller_pieces ? spinning.bytes : spinning.events;
    const std::uint64_t done_sleeping = smaller_pieces ? sleeping.bytes : sleeping.events;
    return static_cast<double>(spinning.cpu_ns) * static_cast<double>(done_sleeping) <=
           static_cast<double>(sleeping.cpu_ns) * static_cast<double>(done_spinning);
}

} // namespace coil::detail
