#include "frame_owners.hpp"

#include <coil/core/config.hpp>
#include <coil/core/detail/frame_sizes.hpp>
#include <coil/uring/detail/tsan.hpp>

#include <cstddef>
#include <iterator>

#ifdef COIL_TSAN
#include <malloc.h>
#elif COIL_SANITIZED
extern "C" {
[[gnu::weak]] const void* __sanitizer_get_allocated_begin(const void*); // NOLINT
[[gnu::weak]] std::size_t __sanitizer_get_allocated_size(const void*);  // NOLINT
}
#endif

namespace coil::detail {

namespace {

/// The bytes from a frame's address to the end of its allocation, which the frame allocator does
/// not know under a sanitizer. 0 if unknown.
std::size_t sanitized_bytes_from([[maybe_unused]] const void* frame) noexcept {
#ifdef COIL_TSAN
    return ::malloc_usable_size(const_cast<void*>(frame));
#elif COIL_SANITIZED
    if (__sanitizer_get_allocated_begin == nullptr || __sanitizer_get_allocated_size == nullptr) {
        return 0;
    }
    const auto* const begin = static_cast<const std::byte*>(__sanitizer_get_allocated_begin(frame));
    if (begin == nullptr) {
        return 0;
    }
    return static_cast<std::size_t>(begin + __sanitizer_get_allocated_size(begin) -
                                    static_cast<const std::byte*>(frame));
#else
    return 0;
#endif
}

} // namespace

void frame_owners::add_frame(const void* address, promise_base& top) {
    std::size_t bytes = frame_bytes_from(address);
    if (bytes == 0) {
        bytes = sanitized_bytes_from(address);
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    frames_.insert_or_assign(begin, frame{begin + bytes, &top});
}

promise_base* frame_owners::owner_of(const void* object) const {
    for (std::size_t steps = 0; object != nullptr && steps <= frames_.size(); ++steps) {
        const auto address = reinterpret_cast<std::uintptr_t>(object);
        const auto behind = frames_.upper_bound(address);
        if (behind == frames_.begin()) {
            return nullptr;
        }
        const frame& around = std::prev(behind)->second;
        if (address >= around.end) {
            return nullptr;
        }
        promise_base& root = *around.root;
        if (!root.owner().bound) {
            return &root;
        }
        object = root.owner().parent_nursery(); // a child belongs to the owner of its nursery
    }
    return nullptr;
}

promise_base* frame_owners::owner_of_root(promise_base* root) const {
    while (root != nullptr && root->is_root() && root->owner().bound) {
        promise_base* const above = root->owner().owning_root();
        root = above != nullptr ? above : owner_of(root->owner().parent_nursery());
    }
    return root;
}

} // namespace coil::detail
