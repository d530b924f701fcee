#pragma once

#include <cstddef>

#include <unistd.h>

namespace coil::detail {

/// The size of a page of memory.
[[nodiscard]] inline std::size_t page_size() noexcept {
    static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return size;
}

} // namespace coil::detail
