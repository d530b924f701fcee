#pragma once

#include <coil/context/live_metrics.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// Follows one coroutine in some turns through the ready queue: the last in line when the turn
/// begins, until it is resumed, which may be some turns later. Owner, except for delay().
class ready_probe {
public:
    /// At the beginning of each turn. True when the turn wants to be measured: the last one, in
    /// which somebody is followed already, or a new one.
    [[nodiscard]] bool due() noexcept { return --turns_left_ == 0; }

    [[nodiscard]] bool following() const noexcept { return following_; }
    void follow(std::size_t ahead, std::int64_t now_ns) noexcept {
        following_ = true;
        ahead_ = ahead;
        since_ns_ = now_ns;
    }
    /// How many are resumed before it.
    [[nodiscard]] std::size_t ahead() const noexcept { return ahead_; }
    /// Not in this turn, in which so many are resumed.
    void look_again(std::size_t resumed) noexcept {
        ahead_ -= resumed;
        turns_left_ = 1;
    }
    void resumed(std::int64_t now_ns) noexcept {
        delay_.add(now_ns > since_ns_ ? static_cast<std::uint64_t>(now_ns - since_ns_) : 0);
        rest();
    }
    void rest() noexcept {
        following_ = false;
        turns_left_ = turns_between;
    }

    [[nodiscard]] log2_histogram delay() const noexcept { return delay_.snapshot(); }

private:
    /// Two clock readings in so many turns. A prime, not to fall into step with the program.
    static constexpr std::uint32_t turns_between = 127;

    std::uint32_t turns_left_ = 1;
    bool following_ = false;
    std::size_t ahead_ = 0;
    std::int64_t since_ns_ = 0;
    live_histogram delay_;
};

} // namespace coil::detail
