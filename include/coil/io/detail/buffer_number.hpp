#pragma once

#include <cstdint>

namespace coil::detail {

/// The field has 16 bits. A larger index is mapped to a number that names no buffer (there are at
/// most 16384) rather than truncated to the number of another one.
constexpr unsigned buffer_number(unsigned index) noexcept {
    return index < UINT16_MAX ? index : UINT16_MAX;
}

} // namespace coil::detail
