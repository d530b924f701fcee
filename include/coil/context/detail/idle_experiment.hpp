#pragma once

#include <coil/context/detail/idle_way.hpp>

#include <cstdint>

namespace coil::detail {

/// Finds out by experiment which way of waiting is the cheapest for the present load. Arithmetic
/// only: the caller supplies the measurements.
///
/// The cost of a way is the wall-clock time plus one and a half times the CPU time per unit of
/// work: a microsecond of CPU time, which another thread could use, has to save more than a
/// microsecond of latency. For a lone client, which waits for this thread, the cheapest way is a
/// spin. For many clients it is a batch: each sleep makes one of them spend time on the wake-up. If
/// another thread or a device limits the rate, it is the way with the least CPU time.
///
/// An experiment compares three windows of about 2 ms: the usual way, another one (the challenger),
/// the usual way again. Two experiments in a row that favour the challenger make it the usual way.
/// The other ways are the challengers in turn. While experiments confirm the usual way, they become
/// rare. Their times are random, so that two contexts, or a load with a period, do not keep in step
/// with them.
class idle_experiment {
public:
    /// Readings of counters.
    struct sample {
        std::int64_t now_ns;
        std::int64_t cpu_ns;
        std::uint64_t events; ///< completions and messages
        std::uint64_t bytes;  ///< transferred; need be counted only while is_measuring()
    };

    /// `has_batch`: whether idle_way::batch is possible.
    idle_experiment(std::uint32_t seed, bool has_batch) noexcept
        : ways_(has_batch ? 3 : 2), untried_(ways_ - 1), random_(seed) {}

    /// The way to wait now.
    [[nodiscard]] idle_way way() const noexcept {
        return phase_ == phase::challenge ? challenger_ : usual_;
    }
    /// The way to wait outside experiments.
    [[nodiscard]] idle_way usual() const noexcept { return usual_; }
    /// Whether to batch the next sleep. Not after a sleep of an idle loop: there is nothing to
    /// accumulate, and the kernel's timer would be an interrupt more in each sleep.
    [[nodiscard]] bool batches() const noexcept { return way() == idle_way::batch && !was_idle_; }
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

    /// The loop has slept. If for long, it was idle, and not waiting for the next event of a load.
    void on_sleep(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
        was_idle_ = end_ns - begin_ns >= idle_ns;
        if (was_idle_) [[unlikely]] {
            on_idle(begin_ns, end_ns);
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
    enum class phase : std::uint8_t { none, before, challenge, after };

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

    void on_idle(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
    void begin_window(const sample& now, phase next) noexcept;
    [[nodiscard]] bool end_window(const sample& now, measured& to) noexcept;
    void pause(std::int64_t now_ns, std::int64_t about_ns) noexcept;
    void conclude(std::int64_t now_ns) noexcept;
    void next_challenger() noexcept;
    [[nodiscard]] std::int64_t about(std::int64_t duration_ns) noexcept;
    [[nodiscard]] static bool is_cheaper(const measured& challenger,
                                         const measured& usual) noexcept;

    idle_way usual_ = idle_way::spin;
    idle_way challenger_ = idle_way::park;
    phase phase_ = phase::none;
    bool was_idle_ = false; // the last sleep was long
    int ways_;
    int untried_;  // challengers of this round that are still to be tried
    int wins_ = 0; // of the challenger, in a row
    int idles_to_check_ = idles_between_checks;
    std::uint32_t random_;
    std::int64_t next_sample_ns_ = 0;
    std::int64_t pause_ns_ = shortest_pause_ns;
    sample begin_{}; // of the present window
    measured at_usual_;
    measured at_challenger_;
    std::uint64_t results_ = 0;
};

} // namespace coil::detail
