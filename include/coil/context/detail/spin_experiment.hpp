#pragma once

#include <cstdint>

namespace coil::detail {

/// Finds out by experiment whether spinning before a sleep pays. Arithmetic only: the caller
/// supplies the measurements.
///
/// Spinning pays if more work is done per second than without it, because a lone client waits for
/// this thread, or if the same work takes less CPU time, because each sleep costs more than the
/// spin. It does not pay if another thread or a device limits the rate: then a spin only waits.
///
/// An experiment compares three windows of time: the present way, the other way, the present way
/// again. Two experiments in a row that favour the other way change the way. While experiments
/// confirm the present way, they become rare.
class spin_experiment {
public:
    /// Readings of counters that never decrease.
    struct sample {
        std::int64_t now_ns;
        std::int64_t cpu_ns;
        std::uint64_t events; ///< completions and messages
        std::uint64_t bytes;  ///< that the completions have transferred
    };

    /// Whether to spin, as far as the experiment decides.
    [[nodiscard]] bool spins() const noexcept { return spins_; }
    /// Whether a window has begun: the bytes that completions transfer are to be counted.
    [[nodiscard]] bool is_measuring() const noexcept { return phase_ != phase::none; }
    /// Counts an idle period in which a spin is considered. If true, is_sample_due() must be asked.
    [[nodiscard]] bool is_check_due() noexcept { return --idles_to_check_ == 0; }
    /// Whether add() is to be called now, because a window begins or ends.
    [[nodiscard]] bool is_sample_due(std::int64_t now_ns) noexcept {
        idles_to_check_ = idles_between_checks;
        return now_ns >= next_sample_ns_;
    }
    void add(const sample& now) noexcept;
    /// A sleep was longer than a spin. Its length says nothing about spinning, so it does not count
    /// as a part of the window.
    void on_long_sleep(std::int64_t length_ns) noexcept {
        excluded_ns_ += length_ns;
        next_sample_ns_ += length_ns;
    }

    /// Whether spinning pays, as far as is known.
    [[nodiscard]] bool is_in_favour() const noexcept { return spins_ != (phase_ == phase::other); }
    /// The number of experiments that had a result.
    [[nodiscard]] std::uint64_t results() const noexcept { return results_; }

private:
    enum class phase : std::uint8_t { none, before, other, after };

    /// What a window has measured.
    struct measured {
        std::int64_t wall_ns = 0;
        std::int64_t cpu_ns = 0;
        std::uint64_t events = 0;
        std::uint64_t bytes = 0;
    };

    static constexpr std::int64_t window_ns = 2'000'000;
    static constexpr std::int64_t shortest_pause_ns = 20'000'000;
    static constexpr std::int64_t longest_pause_ns = 1'280'000'000;
    static constexpr unsigned idles_between_checks = 16;
    static constexpr std::uint64_t least_events = 16; // in a window
    static constexpr int experiments_to_change = 2;

    void begin_window(const sample& now, phase next) noexcept;
    [[nodiscard]] bool end_window(const sample& now, measured& to) noexcept;
    void pause(const sample& now) noexcept;
    void conclude(const sample& now) noexcept;
    [[nodiscard]] static bool pays(const measured& spinning, const measured& parking) noexcept;

    bool spins_ = true; // in the present window
    phase phase_ = phase::none;
    int contradictions_ = 0; // experiments in a row that favoured the other way
    unsigned idles_to_check_ = idles_between_checks;
    std::int64_t next_sample_ns_ = 0;
    std::int64_t pause_ns_ = shortest_pause_ns;
    std::int64_t excluded_ns_ = 0; // of the present window
    sample begin_{};               // of the present window
    measured present_way_;
    measured other_way_;
    std::uint64_t results_ = 0;
};

} // namespace coil::detail
