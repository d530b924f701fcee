#pragma once

#include <cstddef>
#include <cstdint>

namespace coil::uring::detail {

/// The object at a byte offset that the kernel has returned, in memory that is shared with it.
template <class T>
T* at_offset(void* base, std::uint32_t offset) noexcept {
    return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

} // namespace coil::uring::detail
