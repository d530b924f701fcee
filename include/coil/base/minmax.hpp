#pragma once

// Replacements for std::min and std::max. <algorithm> is not included, because its range algorithms
// take longer to compile than all other headers that coil includes for arithmetic.

namespace coil::detail {

template <class T>
[[nodiscard]] constexpr T min(T a, T b) noexcept {
    return b < a ? b : a;
}

template <class T>
[[nodiscard]] constexpr T max(T a, T b) noexcept {
    return a < b ? b : a;
}

} // namespace coil::detail
