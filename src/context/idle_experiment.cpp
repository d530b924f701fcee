#include <coil/base/minmax.hpp>
#include <coil/context/detail/idle_experiment.hpp>

namespace coil::detail {

void idle_experiment::add(const sample& now) noexcept {
    if (phase_ == phase::none) {
        at_usual_ = {};
        at_challenger_ = {};
        begin_window(now, phase::before);
    } else if (!end_window(now, phase_ == phase::challenge ? at_challenger_ : at_usual_)) {
        abandon(now.now_ns);
    } else if (phase_ == phase::after) {
        phase_ = phase::none;
        conclude(now.now_ns);
    } else {
        begin_window(now, phase_ == phase::before ? phase::challenge : phase::after);
    }
}

void idle_experiment::begin_window(const sample& now, phase next) noexcept {
    phase_ = next;
    begin_ = now;
    next_sample_ns_ = now.now_ns + about(window_ns);
}

/// Returns false if the window says nothing: too little has happened in it, or it took too long.
bool idle_experiment::end_window(const sample& now, measured& to) noexcept {
    const std::int64_t wall = now.now_ns - begin_.now_ns;
    const std::uint64_t events = now.events - begin_.events;
    to.wall_ns += wall;
    to.cpu_ns += now.cpu_ns - begin_.cpu_ns;
    to.events += events;
    to.bytes += now.bytes - begin_.bytes;
    return events >= least_events && wall > 0 && wall <= longest_window_ns;
}

void idle_experiment::pause(std::int64_t now_ns, std::int64_t about_ns) noexcept {
    next_sample_ns_ = now_ns + about(about_ns);
}

/// The next experiment has another challenger: perhaps this one was the cause.
void idle_experiment::abandon(std::int64_t now_ns) noexcept {
    if (is_measuring()) {
        phase_ = phase::none;
        next_challenger();
    }
    wins_ = 0;
    untried_ = ways_ - 1;
    pause(now_ns, pause_ns_);
}

void idle_experiment::on_idle(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    constexpr std::int64_t long_ns = 1'000'000'000;
    if (end_ns - begin_ns >= long_ns) {
        pause_ns_ = shortest_pause_ns; // the next load may be another one
        next_sample_ns_ = min(next_sample_ns_, end_ns + shortest_pause_ns);
    }
    if (is_measuring()) {
        abandon(end_ns);
    }
}

void idle_experiment::conclude(std::int64_t now_ns) noexcept {
    ++results_;
    if (is_cheaper(at_challenger_, at_usual_)) {
        if (++wins_ >= experiments_to_change) {
            wins_ = 0;
            usual_ = challenger_;
            untried_ = ways_ - 1;
            next_challenger();
        }
        pause_ns_ = shortest_pause_ns;
        pause(now_ns, repetition_pause_ns);
        return;
    }
    wins_ = 0;
    next_challenger();
    if (--untried_ > 0) {
        pause(now_ns, repetition_pause_ns);
        return;
    }
    untried_ = ways_ - 1;
    pause(now_ns, pause_ns_);
    pause_ns_ = min(2 * pause_ns_, longest_pause_ns);
}

void idle_experiment::next_challenger() noexcept {
    do {
        challenger_ = static_cast<idle_way>((static_cast<int>(challenger_) + 1) % ways_);
    } while (challenger_ == usual_);
}

/// A random duration, from half of the given one to half more.
std::int64_t idle_experiment::about(std::int64_t duration_ns) noexcept {
    random_ = random_ * 1'664'525U + 1'013'904'223U;
    return duration_ns / 2 + static_cast<std::int64_t>(random_ >> 16) * (duration_ns >> 16);
}

/// Whether the challenger's cost is lower by more than noise. The unit of work is an event. It is a
/// byte if both ways transfer the same bytes per second in different numbers of events: a loop that
/// spins receives a stream in smaller pieces, which is no gain.
bool idle_experiment::is_cheaper(const measured& challenger, const measured& usual) noexcept {
    const auto rate_ratio = [&](std::uint64_t measured::* what) {
        return static_cast<double>(challenger.*what) * static_cast<double>(usual.wall_ns) /
               (static_cast<double>(usual.*what) * static_cast<double>(challenger.wall_ns));
    };
    const auto is_same = [](double ratio) { return ratio > 0.9 && ratio < 1.1; };
    const bool have_bytes = challenger.bytes >= challenger.events && usual.bytes >= usual.events;
    const bool is_stream = have_bytes && is_same(rate_ratio(&measured::bytes)) &&
                           !is_same(rate_ratio(&measured::events));
    const auto cost = [is_stream](const measured& m) {
        constexpr double cpu_weight = 1.5;
        return (static_cast<double>(m.wall_ns) + cpu_weight * static_cast<double>(m.cpu_ns)) /
               static_cast<double>(is_stream ? m.bytes : m.events);
    };
    constexpr double noise = 1.02;
    return cost(challenger) * noise < cost(usual);
}

} // namespace coil::detail
