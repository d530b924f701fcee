#pragma once

#include <concepts>
#include <stdexcept>
#include <utility>

namespace coil::detail {

/// Converts a number. Throws std::invalid_argument if it is out of range. For constructors that
/// accept any integer type, so that an int variable in braces does not narrow.
template <std::integral To, std::integral From>
To checked_number(From number) {
    if (!std::in_range<To>(number)) {
        throw std::invalid_argument("coil: a number of contexts or entries is out of range");
    }
    return static_cast<To>(number);
}

} // namespace coil::detail
