#pragma once

// std::min and std::max without <algorithm>, whose algorithms on ranges cost a compiler more than
// everything else that coil's headers include for arithmetic.

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
