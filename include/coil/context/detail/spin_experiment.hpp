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
/// An experiment compares three windows of about 2 ms: the usual way of waiting, the opposite one,
/// the usual one again. Two experiments in a row that favour the opposite way make it the usual
/// one. While experiments confirm the usual way, they become rare. Their times are random, so that
/// two contexts, or a load with a period, do not keep in step with them.
class spin_experiment {
public:
    /// Readings of counters.
    struct sample {
        std::int64_t now_ns;
        std::int64_t cpu_ns;
        std::uint64_t events; ///< completions and messages
        std::uint64_t bytes;  ///< transferred; need be counted only while is_measuring()
    };

    explicit spin_experiment(std::uint32_t seed) noexcept : random_(seed) {}

    /// Whether to spin now, as far as the experiments decide.
    [[nodiscard]] bool spins() const noexcept { return spins_; }
    /// Whether spinning is the usual way.
    [[nodiscard]] bool is_in_favour() const noexcept {
        return spins_ != (phase_ == phase::opposite);
    }
    /// Whether a window has begun.
    [[nodiscard]] bool is_measuring() const noexcept { return phase_ != phase::none; }
    /// The number of experiments that had a result.
    [[nodiscard]] std::uint64_t results() const noexcept { return results_; }

    /// Counts an idle period. If true, the caller reads the clock and calls is_sample_due().
    [[nodiscard]] bool count_idle() noexcept {
        if (--idles_to_check_ > 0) {
            return false;
        }
        idles_to_check_ = idles_between_checks;
        return true;
    }
    /// Whether to call add(), because a window begins or ends.
    [[nodiscard]] bool is_sample_due(std::int64_t now_ns) const noexcept {
        return now_ns >= next_sample_ns_;
    }
    void add(const sample& now) noexcept;

    /// The loop has slept for so long that it was idle, not waiting for the next event of a load.
    void on_sleep(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
        if (end_ns - begin_ns >= idle_ns) [[unlikely]] {
            was_idle(begin_ns, end_ns);
        }
    }
    /// The loop is busy. Abandons a window that should have ended long ago: there are no idle
    /// periods any more.
    void on_busy(std::int64_t now_ns) noexcept {
        if (is_measuring() && now_ns - begin_.now_ns > longest_window_ns) {
            abandon(now_ns);
        }
    }
    /// Ends an experiment without a result: the loop continues with the usual way.
    void abandon(std::int64_t now_ns) noexcept;

private:
    enum class phase : std::uint8_t { none, before, opposite, after };

    /// What windows of one way have measured.
    struct measured {
        std::int64_t wall_ns = 0;
        std::int64_t cpu_ns = 0;
        std::uint64_t events = 0;
        std::uint64_t bytes = 0;
    };

    static constexpr std::int64_t window_ns = 2'000'000;
    static constexpr std::int64_t longest_window_ns = 16'000'000;
    static constexpr std::int64_t idle_ns = 1'000'000;
    static constexpr std::int64_t shortest_pause_ns = 20'000'000;
    static constexpr std::int64_t longest_pause_ns = 2'560'000'000;
    static constexpr std::int64_t repetition_pause_ns = 5'000'000;
    static constexpr int idles_between_checks = 8;
    static constexpr std::uint64_t least_events = 8; // in a window
    static constexpr int experiments_to_change = 2;

    void was_idle(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
    void begin_window(const sample& now, phase next) noexcept;
    [[nodiscard]] bool end_window(const sample& now, measured& to) noexcept;
    void pause(std::int64_t now_ns, std::int64_t about_ns) noexcept;
    void conclude(std::int64_t now_ns) noexcept;
    [[nodiscard]] std::int64_t about(std::int64_t duration_ns) noexcept;
    [[nodiscard]] static bool pays(const measured& spinning, const measured& sleeping) noexcept;

    bool spins_ = true;
    phase phase_ = phase::none;
    int contradictions_ = 0; // results in a row that favoured the opposite way
    int idles_to_check_ = idles_between_checks;
    std::uint32_t random_;
    std::int64_t next_sample_ns_ = 0;
    std::int64_t pause_ns_ = shortest_pause_ns;
    sample begin_{}; // of the present window
    measured usual_;
    measured opposite_;
    std::uint64_t results_ = 0;
};

} // namespace coil::detail
