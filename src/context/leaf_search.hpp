#pragma once

#include "task_snapshot.hpp"

#include <coil/core/detail/frame_sizes.hpp>

#include <cstddef>

namespace coil::detail {

/// Finds the awaiter of a suspended coroutine. Nothing points to it, because every await would have
/// to store a pointer. But it is in the coroutine's frame, or directly behind it in memory. It
/// holds the coroutine's address and, at a known distance, a word with the address of the loop and
/// the state of the await. No other object has both words. Owner thread.
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
