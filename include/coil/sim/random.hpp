#pragma once

#include <cstdint>
#include <limits>

namespace coil::sim {

/// Random numbers whose sequence is the same everywhere, which is what makes a seed replay a run.
/// It is a standard uniform random bit generator; the standard's distributions are not the same
/// everywhere, so use the members. One thread at a time.
class random_source {
public:
    using result_type = std::uint64_t;

    explicit constexpr random_source(std::uint64_t seed) noexcept : state_(seed) {}

    static constexpr result_type min() noexcept { return 0; }
    static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

    /// The next number. (splitmix64: a counter whose bits are mixed until neighbours have nothing
    /// in common.)
    constexpr result_type operator()() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
        return bits ^ (bits >> 31);
    }

    /// 0 ... n-1; 0 for n = 0. The bias does not matter below 2^32.
    constexpr std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : (*this)() % n; }
    /// low ... high.
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    /// True so many times in a thousand. A rate of 0 takes no number from the sequence.
    constexpr bool chance(unsigned per_mille) noexcept {
        return per_mille != 0 && below(1000) < per_mille;
    }
    /// True once in `n` times.
    constexpr bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }
    /// A source of its own, for a part that must not disturb this one's sequence.
    constexpr random_source fork() noexcept { return random_source((*this)()); }

private:
    std::uint64_t state_;
};

} // namespace coil::sim
