#pragma once

#include <cstdint>
#include <limits>

namespace coil::sim {

/// A random number generator whose sequence is the same on all platforms, so that a seed replays a
/// run. It is a standard uniform random bit generator, but the standard's distributions vary
/// between implementations: use the members instead. Threading: one thread at a time.
///
///     sim::random_source random(seed);
///     const auto pause = 1ms * random.between(1, 10);
class random_source {
public:
    using result_type = std::uint64_t;

    explicit constexpr random_source(std::uint64_t seed) noexcept : state_(seed) {}

    static constexpr result_type min() noexcept { return 0; }
    static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

    /// The next number (splitmix64: a counter with well-mixed bits).
    constexpr result_type operator()() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
        return bits ^ (bits >> 31);
    }

    /// A number in [0, n); 0 for n = 0. The bias is negligible below 2^32.
    constexpr std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : (*this)() % n; }
    /// A number in [low, high].
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    /// True with a probability of `per_mille` in a thousand. A rate of 0 consumes no random number.
    constexpr bool chance(unsigned per_mille) noexcept {
        return per_mille != 0 && below(1000) < per_mille;
    }
    /// True with a probability of 1/n.
    constexpr bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }
    /// Returns an independent generator, for a part that must not affect this one's sequence.
    constexpr random_source fork() noexcept { return random_source((*this)()); }

private:
    std::uint64_t state_;
};

} // namespace coil::sim
