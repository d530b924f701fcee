#pragma once

#include <cstdint>
#include <limits>

namespace coil_test {

/// A small generator with the same sequence on all platforms, so that a printed seed replays a
/// test. It is a standard uniform random bit generator.
class random_source {
public:
    using result_type = std::uint64_t;

    explicit constexpr random_source(std::uint64_t seed) noexcept : state_(seed) {}

    static constexpr result_type min() noexcept { return 0; }
    static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

    /// splitmix64: a counter with well-mixed bits.
    constexpr result_type operator()() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
        return bits ^ (bits >> 31);
    }

    /// A number in [0, n). The bias is negligible for small n.
    constexpr unsigned below(unsigned n) noexcept {
        return n == 0 ? 0 : static_cast<unsigned>((*this)() % n);
    }
    constexpr unsigned between(unsigned low, unsigned high) noexcept {
        return low + below(high - low + 1);
    }
    /// True with a probability of `per_mille` in a thousand.
    constexpr bool chance(unsigned per_mille) noexcept {
        return per_mille != 0 && below(1000) < per_mille;
    }
    constexpr bool one_in(unsigned n) noexcept { return below(n) == 0; }

private:
    std::uint64_t state_;
};

/// Mixes two numbers into one without correlation to neighbouring ones.
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
    return random_source(random_source(a)() ^ b)();
}

} // namespace coil_test
