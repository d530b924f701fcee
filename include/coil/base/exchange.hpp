#pragma once

#include <utility>

// Replacements for std::exchange and std::swap. The constraints of the standard functions
// (noexcept, which types can be swapped) instantiate about ten traits for each type, which takes
// most of the time to compile a move constructor. (swap_values has another name so that no
// unqualified swap() finds it.)

namespace coil::detail {

/// Returns the old value.
template <class T, class U = T>
[[nodiscard]] constexpr T exchange(T& object, U&& next) {
    T before = std::move(object);
    object = std::forward<U>(next);
    return before;
}

template <class T>
constexpr void swap_values(T& a, T& b) noexcept {
    T before = std::move(a);
    a = std::move(b);
    b = std::move(before);
}

} // namespace coil::detail
