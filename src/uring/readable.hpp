#pragma once

#include <cstddef>

namespace coil::uring::detail {

/// Whether that memory can be read: where Linux would answer -EFAULT, and a look would be a crash.
/// One system call for each page, none for nothing.
bool is_readable(const void* data, std::size_t size) noexcept;

/// The size of a text of up to PATH_MAX bytes, its end included; more where it is longer; 0 where
/// it cannot be read.
std::size_t readable_text(const char* text) noexcept;

} // namespace coil::uring::detail
