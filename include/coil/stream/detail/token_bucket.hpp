#pragma once

#include <coil/base/minmax.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/context/context_clock.hpp>
#include <coil/core/buffer.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// A token bucket whose tokens are bytes. It begins full. Counts in billionths of a byte, so that
/// no time is lost by rounding.
class token_bucket {
public:
    /// `per_second` = 0: no limit.
    token_bucket(std::uint64_t per_second, std::size_t burst) noexcept
        : rate_(min<std::uint64_t>(per_second, most_per_second)),
          full_(static_cast<std::int64_t>(max<std::size_t>(transfer_size(burst), 1)) * unit),
          tokens_(full_), counted_at_(context_clock::now()) {}

    [[nodiscard]] bool is_limited() const noexcept { return rate_ > 0; }

    /// The number of bytes that may pass now.
    [[nodiscard]] std::size_t available() noexcept {
        const context_clock::time_point now = context_clock::now();
        const std::int64_t ns = std::chrono::nanoseconds(now - counted_at_).count();
        counted_at_ = now;
        if (ns > time_for(full_)) {
            tokens_ = full_;
        } else if (ns > 0) {
            tokens_ = min(full_, tokens_ + ns * static_cast<std::int64_t>(rate_));
        }
        return tokens_ > 0 ? static_cast<std::size_t>(tokens_ / unit) : 0;
    }
    /// Removes the tokens of bytes that were transferred. First adds the tokens of the time until
    /// now: a bucket that was full during the transfer must not gain tokens for its duration.
    void take(std::size_t bytes) noexcept {
        if (!is_limited()) {
            return;
        }
        static_cast<void>(available());
        tokens_ -= static_cast<std::int64_t>(bytes) * unit;
    }

    /// The number of bytes that a call for `size` bytes waits for: not all, because a slow stream
    /// should move as they become available, but more than one, because every piece costs a call.
    [[nodiscard]] std::size_t worth_waiting_for(std::size_t size) const noexcept {
        constexpr std::uint64_t pieces_per_second = 100;
        const auto piece =
            static_cast<std::size_t>(max<std::uint64_t>(rate_ / pieces_per_second, 1));
        return min(size, min(piece, static_cast<std::size_t>(full_ / unit)));
    }
    /// The time at which this number of bytes, at most a burst, will be available. Call available()
    /// first.
    [[nodiscard]] context_clock::time_point time_of(std::size_t bytes) const noexcept {
        const std::int64_t missing = static_cast<std::int64_t>(bytes) * unit - tokens_;
        return counted_at_ + std::chrono::nanoseconds(missing > 0 ? time_for(missing) : 0);
    }

private:
    static constexpr std::int64_t unit = 1'000'000'000;
    // Low enough that the sum in available() does not overflow.
    static constexpr std::uint64_t most_per_second = 1'000'000'000'000'000'000;

    /// Nanoseconds, rounded up.
    [[nodiscard]] std::int64_t time_for(std::int64_t tokens) const noexcept {
        const auto rate = static_cast<std::int64_t>(rate_);
        return tokens / rate + (tokens % rate != 0 ? 1 : 0);
    }

    std::uint64_t rate_; // bytes per second, and tokens per nanosecond
    std::int64_t full_;
    std::int64_t tokens_;
    context_clock::time_point counted_at_;
};

} // namespace coil::detail
