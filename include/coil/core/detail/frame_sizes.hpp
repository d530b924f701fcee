#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace coil::detail {

/// The sizes of the frames that exist when this is constructed. For reports: it reads no frame.
class frame_sizes {
public:
    frame_sizes();

    /// In bytes, rounded up to the allocator's classes. 0 if unknown: of a frame inside of another
    /// one's, of one that is larger than the allocator's classes, and under a sanitizer.
    [[nodiscard]] std::size_t find(const void* frame) const noexcept;
    /// How many bytes there are from an address to the end of the frame that the allocator made
    /// there. 0 if unknown.
    [[nodiscard]] std::size_t bytes_from(const void* address) const noexcept;

private:
    struct place {
        std::size_t offset; // in the frame
        std::size_t size;   // of the frame; 0: unknown
    };
    [[nodiscard]] place place_of(const void* address) const noexcept;

    std::unordered_map<std::uintptr_t, std::uint32_t> spans_; // address, bytes per frame
};

} // namespace coil::detail
