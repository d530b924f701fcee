#pragma once

#include <coil/uring/abi.hpp>

#include <bit>
#include <cstdint>

namespace coil::uring::prep::detail {

inline std::uint64_t address(const volatile void* p) noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p));
}

constexpr sqe entry(opcode op, int fd, std::uint64_t addr = 0, std::uint32_t len = 0,
                    std::uint64_t off = 0) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(op);
    s.fd = fd;
    s.off = off;
    s.addr = addr;
    s.len = len;
    return s;
}

/// A direct descriptor's slot in the kernel's encoding: 0 means "none", so slots count from 1.
constexpr std::uint32_t slot(std::uint32_t index) noexcept {
    return index == file_index_alloc ? file_index_alloc : index + 1;
}

/// Swaps the half-words of a poll mask on big-endian machines, as the kernel expects.
constexpr std::uint32_t poll_mask(std::uint32_t mask) noexcept {
    if constexpr (std::endian::native == std::endian::big) {
        return std::rotl(mask, 16);
    } else {
        return mask;
    }
}

} // namespace coil::uring::prep::detail
