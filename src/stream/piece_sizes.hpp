#pragma once

#include <cstddef>

namespace coil::detail {

/// The maximum size of the buffers through which data is copied.
inline constexpr std::size_t buffer_size = std::size_t{64} << 10;
/// The number of bytes spliced in one step, after which other coroutines run.
inline constexpr std::size_t piece_size = std::size_t{256} << 10;

} // namespace coil::detail
