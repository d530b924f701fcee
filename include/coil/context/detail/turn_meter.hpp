#pragma once

#include <coil/base/minmax.hpp>
#include <coil/context/detail/live_metrics.hpp>

#include <array>
#include <atomic>
#include <cstdint>

namespace coil::detail {

/// Measures the length of turns at low cost: a turn may take a tenth of the time of a clock
/// reading.
///
/// Turns are measured in groups, with one clock reading per group: the end of a group is the
/// beginning of the next one. The group size adapts: short turns form groups so large that the
/// reading does not matter, a long turn forms a group of its own. The loop has to read the clock
/// before and after it waits anyway; these readings also end a group.
///
/// No time is lost between groups, so a long turn cannot be missed. A group that took far longer
/// than expected is assumed to contain one long turn among short ones, as caused by blocking code.
/// After that, turns are measured one by one. So if the assumption is wrong, because all turns
/// suddenly became long, it is wrong for one group only.
///
/// Owner only, except length(), longest_ns(), slow_turns() and slow_turn_ns().
class turn_meter {
public:
    /// A wait has ended, or run() has started: time counts from here.
    void resume(std::int64_t now_ns) noexcept { since_ns_ = now_ns; }
    /// Discards the unfinished group.
    void reset(std::int64_t now_ns) noexcept {
        resume(now_ns);
        busy_ns_ = 0;
        turns_ = 0;
    }

    /// A turn has ended.
    void count() noexcept { ++turns_; }
    /// Whether the clock should be read now.
    [[nodiscard]] bool due() const noexcept { return turns_ >= group_; }
    /// The clock was read. Time in which no turn has ended belongs to the next turn.
    void lap(std::int64_t now_ns) noexcept {
        busy_ns_ += max<std::int64_t>(now_ns - since_ns_, 0);
        since_ns_ = now_ns;
        if (turns_ > 0) {
            record();
        }
    }

    [[nodiscard]] log2_histogram length() const noexcept { return length_.snapshot(); }
    [[nodiscard]] std::uint64_t longest_ns() const noexcept { return longest_ns_.get(); }
    /// The number of turns of a millisecond or more.
    [[nodiscard]] std::uint64_t slow_turns() const noexcept {
        return slow_turns_.load(std::memory_order_acquire);
    }
    /// The length of one of these turns, which are numbered from 0. Returns 0 if it has not been
    /// measured, or if its length is no longer stored.
    [[nodiscard]] std::uint64_t slow_turn_ns(std::uint64_t number) const noexcept {
        const std::uint64_t before = slow_turns();
        const std::uint64_t ns = slow_ns_[number % slow_ns_.size()].get();
        return number < before && before - number < slow_ns_.size() ? ns : 0;
    }

private:
    static constexpr std::uint32_t largest_group = 16;
    static constexpr std::uint64_t short_group_ns = 8'000;
    static constexpr std::uint64_t long_group_ns = 32'000;
    static constexpr std::uint64_t outlier_ns = 64'000;
    static constexpr std::uint64_t slow_ns = 1'000'000;

    void record() noexcept {
        const auto total = static_cast<std::uint64_t>(busy_ns_);
        if (turns_ > 1 && total >= outlier_ns) {
            record_outlier(total);
        } else {
            const std::uint64_t mean = turns_ > 1 ? total / turns_ : total;
            length_.add(mean, turns_, total);
            note_longest(mean);
            if (total > long_group_ns) {
                group_ = max(group_ / 2, 1U);
                note_slow(mean);
            } else if (total < short_group_ns && due()) {
                group_ = min(group_ * 2, largest_group);
            }
            group_mean_ns_ = turns_ > 1 ? mean : group_mean_ns_;
        }
        busy_ns_ = 0;
        turns_ = 0;
    }

    /// Assumes one long turn. The others are as short as in the previous group, and at most so long
    /// that they do not explain the outlier.
    void record_outlier(std::uint64_t total) noexcept {
        const std::uint64_t others = turns_ - 1;
        const std::uint64_t each = min(group_mean_ns_, long_group_ns / others);
        length_.add(each, others);
        length_.add(total - each * others);
        note_longest(total - each * others);
        note_slow(total - each * others);
        group_ = 1;
    }

    void note_longest(std::uint64_t ns) noexcept {
        if (ns > longest_ns_.get()) {
            longest_ns_.set(ns);
        }
    }

    void note_slow(std::uint64_t ns) noexcept {
        if (ns >= slow_ns) {
            const std::uint64_t number = slow_turns_.load(std::memory_order_relaxed);
            slow_ns_[number % slow_ns_.size()].set(ns);
            slow_turns_.store(number + 1, std::memory_order_release);
        }
    }

    std::int64_t since_ns_ = 0;
    std::int64_t busy_ns_ = 0;        // of the group, until since_ns_
    std::uint32_t turns_ = 0;         // in the group
    std::uint32_t group_ = 1;         // the number of turns to measure together
    std::uint64_t group_mean_ns_ = 0; // of the last group with several turns
    counter longest_ns_;
    std::atomic<std::uint64_t> slow_turns_{0};
    std::array<counter, 8> slow_ns_; // of the last slow turns
    live_histogram length_;
};

} // namespace coil::detail
