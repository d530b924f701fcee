#pragma once

#include <cstdint>
#include <limits>

namespace coil_test {

/// A small generator whose sequence is the same everywhere, so that a printed seed replays a test.
/// It is a standard uniform random bit generator.
class random_source {
public:
    using result_type = std::uint64_t;

    explicit constexpr random_source(std::uint64_t seed) noexcept : state_(seed) {}

    static constexpr result_type min() noexcept { return 0; }
    static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

    /// A counter whose bits are mixed until neighbours have nothing in common.
    constexpr result_type operator()() noexcept {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
        return bits ^ (bits >> 31);
    }

    /// 0 ... n-1. The bias does not matter for small n.
    constexpr unsigned below(unsigned n) noexcept {
        return n == 0 ? 0 : static_cast<unsigned>((*this)() % n);
    }
    constexpr unsigned between(unsigned low, unsigned high) noexcept {
        return low + below(high - low + 1);
    }
    /// True so many times in a thousand.
    constexpr bool chance(unsigned per_mille) noexcept {
        return per_mille != 0 && below(1000) < per_mille;
    }
    constexpr bool one_in(unsigned n) noexcept { return below(n) == 0; }

private:
    std::uint64_t state_;
};

/// Two numbers into one that has nothing in common with the neighbours of either.
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
    return random_source(random_source(a)() ^ b)();
}

} // namespace coil_test
