#pragma once

#include <cstdint>

namespace coil::detail {

/// The buf_index of an SQE. The field has 16 bits; a larger index is not truncated to the number of
/// another buffer but mapped to 65535, which names no buffer, because there are at most 16384
/// buffers.
constexpr unsigned buffer_number(unsigned index) noexcept {
    return index < UINT16_MAX ? index : UINT16_MAX;
}

} // namespace coil::detail
