#pragma once

#include <coil/core/queue.hpp>

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// The coroutines that wait for their turn, first in first out, on one thread.
///
/// The front is a ring of handles: taking the next one needs nothing but the ring, so the processor
/// fetches several frames at once, where a linked list makes it wait for one frame to find the
/// next. What does not fit hangs behind it in an intrusive list: pushing never allocates and never
/// fails, however long the queue grows (guarantee G6).
class ready_queue {
public:
    ready_queue() noexcept {
    } // NOLINT(*-member-init): only [head_, tail_) of the ring means something
    ready_queue(const ready_queue&) = delete;
    ready_queue& operator=(const ready_queue&) = delete;

    [[nodiscard]] bool empty() const noexcept { return head_ == tail_ && overflow_.empty(); }

    /// How many wait.
    [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_ + in_overflow_; }

    /// `node` is the waiter's own; it is used when the ring is full.
    void push(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        if (tail_ == end_) [[unlikely]] {
            if (!extend()) {
                node.coroutine = coroutine;
                overflow_.push(node);
                ++in_overflow_;
                return;
            }
        }
        ring_[tail_++ % capacity] = coroutine;
    }

    /// Whether pop() may be called.
    [[nodiscard]] bool has_next() noexcept {
        if (head_ != tail_) [[likely]] {
            return true;
        }
        return !overflow_.empty() && refill();
    }

    /// The oldest, after has_next() has said that there is one.
    std::coroutine_handle<> pop() noexcept { return ring_[head_++ % capacity]; }

    /// Takes a waiter out, if it is there. Linear: only for frames that are destroyed while they
    /// wait.
    void remove(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        for (std::uint32_t i = head_; i != tail_; ++i) {
            if (ring_[i % capacity] == coroutine) {
                ring_[i % capacity] = std::noop_coroutine();
                return;
            }
        }
        in_overflow_ -= overflow_.remove(node) ? 1 : 0;
    }

    void clear() noexcept {
        overflow_.clear();
        in_overflow_ = 0;
        head_ = tail_;
        end_ = head_ + capacity;
    }

private:
    static constexpr std::uint32_t capacity = 2048;

    /// Makes use of the places that have become free; false when there are none, or when older
    /// waiters than the next one hang in the list.
    bool extend() noexcept {
        if (!overflow_.empty() || tail_ - head_ == capacity) {
            return false;
        }
        end_ = head_ + capacity;
        return true;
    }

    [[gnu::noinline, gnu::cold]] bool refill() noexcept {
        while (!overflow_.empty() && tail_ - head_ < capacity) {
            ring_[tail_++ % capacity] = overflow_.pop().coroutine;
            --in_overflow_;
        }
        end_ = overflow_.empty() ? head_ + capacity : tail_;
        return true;
    }

    // Running counters: a position is one of them modulo the capacity.
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t end_ = capacity; // where push() has to look again; never beyond head_ + capacity
    fifo overflow_;                // younger than all that is in the ring
    std::size_t in_overflow_ = 0;
    std::array<std::coroutine_handle<>, capacity> ring_;
};

} // namespace coil::detail
