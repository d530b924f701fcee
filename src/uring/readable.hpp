#pragma once

#include <cstddef>

namespace coil::uring::detail {

/// Whether the memory can be read: Linux would return -EFAULT where an access would crash. One
/// system call per page; none for an empty range.
bool is_readable(const void* data, std::size_t size) noexcept;

/// Whether the whole area is mapped and writable. Faults it in, as io_uring does when it pins the
/// pages. Before Linux 5.14 this cannot be determined, and the area counts as writable.
bool is_writable(const void* data, std::size_t size) noexcept;

/// Whether the area is both readable and writable.
bool is_accessible(const void* data, std::size_t size) noexcept;

/// The size of a string of up to PATH_MAX bytes, including its terminator; a larger value if it is
/// longer; 0 if it cannot be read.
std::size_t readable_text(const char* text) noexcept;

} // namespace coil::uring::detail
