#pragma once

#include <coil/base/minmax.hpp>

#include <cstdint>

namespace coil::detail {

/// How many coroutines a turn resumes before the loop polls for completions, posts and timers
/// (guarantee G7): at most 256, and fewer if that many take longer than a millisecond.
///
/// Reading the clock for each resumption would cost more than some resumptions. So the duration of
/// whole turns determines the number for the next turn.
class turn_budget {
public:
    static constexpr unsigned largest = 256;
    static constexpr std::int64_t longest_turn_ns = 1'000'000;

    [[nodiscard]] unsigned resumptions() const noexcept { return resumptions_; }

    /// A turn has used the budget up, and ends now.
    void on_used_up(std::int64_t now_ns) noexcept {
        if (busy_since_ns_ != 0) {
            const std::int64_t took = now_ns - busy_since_ns_;
            if (took > longest_turn_ns) {
                resumptions_ = max(resumptions_ / 2, 1U);
            } else if (took < longest_turn_ns / 4) {
                resumptions_ = min(resumptions_ * 2, largest);
            }
        }
        busy_since_ns_ = now_ns;
    }
    /// A turn has ended before the budget was used up: its duration does not count.
    void on_left_over() noexcept { busy_since_ns_ = 0; }

private:
    unsigned resumptions_ = 16;
    std::int64_t busy_since_ns_ = 0; // when the previous turn used its budget up; 0: it did not
};

} // namespace coil::detail
