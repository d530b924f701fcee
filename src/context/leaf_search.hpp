#pragma once

#include "task_snapshot.hpp"

#include <coil/core/detail/frame_sizes.hpp>

#include <cstddef>

namespace coil::detail {

/// Finds the awaiter of a suspended coroutine. Nothing points to it: a pointer would have to be
/// stored by every await. But it is in the coroutine's frame, or behind it in the same memory, and
/// holds the coroutine's address and, at a known distance, the address and state of the loop. No
/// other object has both words. Owner thread.
class leaf_search {
public:
    explicit leaf_search(event_loop& loop) noexcept : loop_(loop) {}

    [[nodiscard]] wait_record find(const void* frame) const;

private:
    [[nodiscard]] const awaiter_base* search(const void* frame, const std::byte* copy,
                                             std::size_t size, std::size_t from) const noexcept;
    [[nodiscard]] static wait_record describe(const awaiter_base& awaiter) noexcept;

    event_loop& loop_;
    const frame_sizes sizes_;
};

} // namespace coil::detail
