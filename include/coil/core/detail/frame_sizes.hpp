#pragma once

#include <cstddef>

// The sizes of frames, for reports. These functions read no frame, and may be called on any thread.
// If the frame has been freed meanwhile, the result may be that of another frame at its address.

namespace coil::detail {

/// In bytes, rounded up to the allocator's classes. 0 if unknown: for a frame that is part of
/// another one, for one that is larger than the allocator's classes, and under a sanitizer.
[[nodiscard]] std::size_t frame_size(const void* frame) noexcept;
/// The number of bytes from an address to the end of the allocator's frame that contains it. 0 if
/// unknown.
[[nodiscard]] std::size_t frame_bytes_from(const void* address) noexcept;
/// The allocator's frame that contains an address. Null if unknown.
[[nodiscard]] const void* frame_around(const void* address) noexcept;

} // namespace coil::detail
