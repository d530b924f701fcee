#pragma once

#include <coil/base/minmax.hpp>
#include <coil/context/detail/live_metrics.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// In some turns, measures how long one coroutine waits to be resumed: the last in the ready queue
/// at the beginning of the turn. It may be resumed some turns later. Owner only, except delay().
class ready_probe {
public:
    /// Called at the beginning of each turn. Returns true if the turn is to be measured: a
    /// coroutine is being followed already, or a new measurement is due.
    [[nodiscard]] bool due() noexcept { return --turns_left_ == 0; }

    [[nodiscard]] bool following() const noexcept { return following_; }
    void follow(std::size_t ahead, std::int64_t now_ns) noexcept {
        following_ = true;
        ahead_ = ahead;
        since_ns_ = now_ns;
    }
    /// The number of coroutines that are resumed before the probed one.
    [[nodiscard]] std::size_t ahead() const noexcept { return ahead_; }
    /// Called if the probed coroutine is not resumed in this turn, which resumes `resumed` others.
    void look_again(std::size_t resumed) noexcept {
        ahead_ -= resumed;
        turns_left_ = 1;
    }
    /// Returns the delay.
    std::uint64_t resumed(std::int64_t now_ns) noexcept {
        const auto delay = static_cast<std::uint64_t>(max<std::int64_t>(now_ns - since_ns_, 0));
        delay_.add(delay);
        rest();
        return delay;
    }
    void rest() noexcept {
        following_ = false;
        turns_left_ = turns_between;
    }

    [[nodiscard]] log2_histogram delay() const noexcept { return delay_.snapshot(); }

private:
    /// Two clock readings per this number of turns. A prime, to avoid resonance with the program.
    static constexpr std::uint32_t turns_between = 127;

    std::uint32_t turns_left_ = 1;
    bool following_ = false;
    std::size_t ahead_ = 0;
    std::int64_t since_ns_ = 0;
    live_histogram delay_;
};

} // namespace coil::detail
