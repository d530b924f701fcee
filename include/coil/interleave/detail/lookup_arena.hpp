#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/frame_allocator.hpp>

#include <cstddef>
#include <cstring>

namespace coil::detail {

[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

class lookup_arena;

/// The memory of one slot of an interleave call: space for one frame.
struct frame_place {
    void* memory = nullptr;
    std::size_t bytes = 0; // 0: the arena has not assigned memory yet
    bool occupied = false;
    lookup_arena* arena = nullptr;
    std::size_t index = 0;
};

/// One block of memory with a place of fixed size for each slot. The first frame determines the
/// size of a place; a larger frame comes from the frame allocator, as do the frames of nested
/// lookups. With a sanitizer, all frames come from the frame allocator, so that each is checked.
class lookup_arena {
public:
    explicit lookup_arena(std::size_t places) noexcept : places_(places) {}
    lookup_arena(const lookup_arena&) = delete;
    lookup_arena& operator=(const lookup_arena&) = delete;
    ~lookup_arena() {
        if (memory_ != nullptr) {
            deallocate_frame(memory_, places_ * stride_);
        }
    }

    /// Assigns memory to a place that has none. In the first call, `bytes` determines the size of
    /// all places.
    void assign(frame_place& place, std::size_t bytes) {
        if (memory_ == nullptr) {
            const std::size_t stride = frame_class(bytes) * frame_alignment;
            memory_ = static_cast<char*>(allocate_frame(places_ * stride));
            stride_ = stride;
        }
        place.memory = memory_ + place.index * stride_;
        place.bytes = stride_;
    }

private:
    std::size_t places_;
    std::size_t stride_ = 0;
    char* memory_ = nullptr;
};

/// The place for the next frame that this thread creates, or null. Set only while an interleave
/// call calls its function.
constinit inline thread_local frame_place* offered_place = nullptr;

/// Offers a place, unless it is occupied, while the object lives.
class place_offer {
public:
    explicit place_offer(frame_place& place) noexcept {
        offered_place = place.occupied ? nullptr : &place;
    }
    place_offer(const place_offer&) = delete;
    place_offer& operator=(const place_offer&) = delete;
    ~place_offer() { offered_place = nullptr; }
};

/// Returns the memory of the offered place, or null if the frame does not fit.
inline void* occupy(frame_place& place, std::size_t bytes) {
    if (bytes > place.bytes) [[unlikely]] {
        if (place.bytes == 0) {
            place.arena->assign(place, bytes);
        }
        if (bytes > place.bytes) {
            return nullptr;
        }
    }
    place.occupied = true;
    return place.memory;
}

/// Allocates the frame of a lookup. The word after it stores its place, or null.
inline void* allocate_lookup(std::size_t bytes) {
    frame_place* place = coil::detail::exchange(offered_place, nullptr);
    const std::size_t total = bytes + sizeof(place);
    void* frame = nullptr;
#if !COIL_SANITIZED
    frame = place != nullptr ? occupy(*place, total) : nullptr;
#endif
    if (frame == nullptr) {
        frame = allocate_frame(total);
        place = nullptr;
    }
    std::memcpy(static_cast<char*>(frame) + bytes, &place, sizeof(place));
    return frame;
}

inline void free_lookup(void* frame, std::size_t bytes) noexcept {
    frame_place* place;
    std::memcpy(&place, static_cast<char*>(frame) + bytes, sizeof(place));
    if (place != nullptr) [[likely]] {
        place->occupied = false;
    } else {
        deallocate_frame(frame, bytes + sizeof(place));
    }
}

} // namespace coil::detail
