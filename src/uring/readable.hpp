#pragma once

#include <cstddef>

namespace coil::uring::detail {

/// Whether the memory can be read: Linux would return -EFAULT where an access would crash. One
/// system call per page; none for an empty range.
bool is_readable(const void* data, std::size_t size) noexcept;

/// The size of a string of up to PATH_MAX bytes, including its terminator; a larger value if it is
/// longer; 0 if it cannot be read.
std::size_t readable_text(const char* text) noexcept;

} // namespace coil::uring::detail
