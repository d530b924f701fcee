#pragma once

#include <cstddef>

namespace coil::detail {

/// What is read and written through memory has this size at most.
inline constexpr std::size_t buffer_size = std::size_t{64} << 10;
/// The number of bytes spliced in one step, after which other coroutines run.
inline constexpr std::size_t piece_size = std::size_t{256} << 10;

} // namespace coil::detail
