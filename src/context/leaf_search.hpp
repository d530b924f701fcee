#pragma once

#include "task_snapshot.hpp"

#include <cstddef>

namespace coil::detail {

class io_op;

/// Finds the awaiter of a suspended coroutine. No pointer to it is stored, which would cost time in
/// every await. But it is in the coroutine's frame, or directly behind it in memory. It holds the
/// coroutine's address and, at a known distance, a word with the address of the loop and the state
/// of the await. No other object has both words. Owner thread.
class leaf_search {
public:
    explicit leaf_search(event_loop& loop) noexcept : loop_(loop) {}

    [[nodiscard]] wait_record find(const void* frame) const;
    /// Whether the coroutine is suspended in an await that has not ended. False if unknown.
    [[nodiscard]] bool is_pending(const void* frame) const noexcept;

private:
    [[nodiscard]] const awaiter_base* find_awaiter(const void* frame) const noexcept;
    [[nodiscard]] const awaiter_base* search(const void* frame, const std::byte* copy,
                                             std::size_t size, std::size_t from) const noexcept;
    [[nodiscard]] static wait_record describe_operation(const io_op& op) noexcept;
    [[nodiscard]] static wait_record describe(const awaiter_base& awaiter) noexcept;

    event_loop& loop_;
};

} // namespace coil::detail
