#pragma once

#include <coil/uring/detail/opcode_names.hpp>

namespace coil::sim::detail {

/// Descriptors of a world begin here, so that they never equal a descriptor of the process.
inline constexpr int first_descriptor = 1 << 24;

using uring::detail::opcode_name;

} // namespace coil::sim::detail
