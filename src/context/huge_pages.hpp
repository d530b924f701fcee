#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace coil::detail {

inline constexpr std::size_t huge_page = std::size_t{2} * 1024 * 1024;

/// Requests huge pages for the parts of the memory that can hold a whole one. The first writes to
/// new memory of small pages take several times as long, because each page faults.
inline void advise_huge_pages(const void* memory, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t begin = (address + huge_page - 1) / huge_page * huge_page;
    const std::uintptr_t end = (address + bytes) / huge_page * huge_page;
    if (begin < end) {
        ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }
}

} // namespace coil::detail
