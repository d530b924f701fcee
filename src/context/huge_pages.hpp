#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace coil::detail {

inline constexpr std::size_t huge_page = std::size_t{2} * 1024 * 1024;

/// Asks for huge pages in what memory contains of them. Writing to new memory of the usual pages
/// takes as long as the first fault of each page does, several times the writing itself.
inline void advise_huge_pages(const void* memory, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t begin = (address + huge_page - 1) / huge_page * huge_page;
    const std::uintptr_t end = (address + bytes) / huge_page * huge_page;
    if (begin < end) {
        ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }
}

} // namespace coil::detail
