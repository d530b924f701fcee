#pragma once

#include <coil/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

// The allocator of coroutine frames.
//
// Each thread keeps a list of free frames per size class; allocating and freeing are a pop and a
// push without locks or atomics. A list that is empty or has reached its limit exchanges a batch of
// frames with a process-wide pool (src/core/frame_allocator.cpp). The pool unmaps a span when all
// of its frames have been returned, but keeps one empty span per size class. A frame may be freed
// on a thread other than the one that allocated it. A thread that goes to sleep after a peak
// returns its lists to the pool.
//
// Frames are aligned to 64 bytes, so locals up to alignas(64) are aligned; a promise has no way to
// request more. Under a sanitizer every frame is a separate allocation, so that the sanitizer can
// check it.

namespace coil::detail {

inline constexpr std::size_t frame_alignment = 64;
/// Larger frames use operator new: caching them would only waste memory.
inline constexpr std::size_t largest_pooled_frame = 16 * 1024;
inline constexpr std::size_t frame_classes = largest_pooled_frame / frame_alignment + 1;

constexpr std::size_t frame_class(std::size_t bytes) noexcept {
    return (bytes + frame_alignment - 1) / frame_alignment;
}

/// A free frame stores the length of the list from it to the end. A counter in the list would be
/// one more word that every allocation has to load.
struct free_frame {
    free_frame* next;
    std::uint32_t below;
};

/// The last element of every list.
constinit inline free_frame no_frame{nullptr, 0};

struct frame_list {
    free_frame* head = &no_frame;
    std::uint32_t limit = 0; // longer lists return a batch to the pool; 0 before the first use
};

/// Trivially constructible, so that access needs no initialisation check, only an offset from the
/// thread pointer.
constinit inline thread_local frame_list frame_lists[frame_classes] = {};

/// Set when a list was longer than its limit, until trim_frame_cache(): the thread has had a peak,
/// and the frames that it still caches may lie in many spans, none of which can then be unmapped.
constinit inline thread_local bool frame_cache_overflowed = false;

/// Gives this thread's free frames back to the pool, and empty spans to the system. For a thread
/// that has had nothing to do for a while.
void trim_frame_cache() noexcept;

void* allocate_frame_slow(std::size_t bytes);
void free_frame_slow(void* frame, std::size_t bytes) noexcept;

inline void* allocate_frame(std::size_t bytes) {
#if COIL_SANITIZED
    return ::operator new(bytes, std::align_val_t{frame_alignment});
#else
    if (bytes <= largest_pooled_frame) [[likely]] {
        frame_list& list = frame_lists[frame_class(bytes)];
        free_frame* const frame = list.head;
        if (frame != &no_frame) [[likely]] {
            list.head = frame->next;
            return frame;
        }
    }
    return allocate_frame_slow(bytes);
#endif
}

inline void deallocate_frame(void* memory, std::size_t bytes) noexcept {
#if COIL_SANITIZED
    ::operator delete(memory, bytes, std::align_val_t{frame_alignment});
#else
    if (bytes <= largest_pooled_frame) [[likely]] {
        frame_list& list = frame_lists[frame_class(bytes)];
        const std::uint32_t below = list.head->below + 1;
        if (below <= list.limit) [[likely]] {
            auto* const frame = static_cast<free_frame*>(memory);
            frame->next = list.head;
            frame->below = below;
            list.head = frame;
            return;
        }
    }
    free_frame_slow(memory, bytes);
#endif
}

/// Allocates a class derived from it with the frame allocator.
struct frame_allocated {
    static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        deallocate_frame(memory, bytes);
    }
};

} // namespace coil::detail
