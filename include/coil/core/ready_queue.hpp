#pragma once

#include <coil/core/queue.hpp>
#include <coil/core/ready_shelf.hpp>

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
///
/// Who is taken out is looked for in the ring, which is short. The list has no way back, so when
/// somebody in it is taken out, all of it moves to a shelf, where everybody knows his place: many
/// that are destroyed while they wait cost a bounded time each, and nobody else pays for it.
class ready_queue {
public:
    ready_queue() noexcept {
    } // NOLINT(*-member-init): only [head_, tail_) of the ring means something
    ready_queue(const ready_queue&) = delete;
    ready_queue& operator=(const ready_queue&) = delete;

    [[nodiscard]] bool empty() const noexcept { return head_ == tail_ && nothing_behind(); }

    /// How many wait.
    [[nodiscard]] std::size_t size() const noexcept {
        return tail_ - head_ + shelf_.size() + in_overflow_;
    }

    /// `node` is the waiter's own, which only the queue uses until the coroutine is resumed or
    /// taken out.
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
        return !nothing_behind() && refill();
    }

    /// The oldest, after has_next() has said that there is one.
    std::coroutine_handle<> pop() noexcept { return ring_[head_++ % capacity]; }

    /// Takes a waiter out that was pushed with this node; false when it is not there any more. For
    /// frames that are destroyed while they wait.
    bool remove(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        if (!shelf_.empty() && shelf_.remove(node)) {
            return true;
        }
        for (std::uint32_t i = head_; i != tail_; ++i) {
            if (ring_[i % capacity] == coroutine) {
                ring_[i % capacity] = std::noop_coroutine();
                return true;
            }
        }
        return !overflow_.empty() && remove_from_overflow(node);
    }

    void clear() noexcept {
        shelf_.clear();
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
        if (!nothing_behind() || tail_ - head_ == capacity) {
            return false;
        }
        end_ = head_ + capacity;
        return true;
    }

    [[nodiscard]] bool nothing_behind() const noexcept {
        return overflow_.empty() && shelf_.empty();
    }

    [[gnu::noinline, gnu::cold]] bool refill() noexcept {
        while (!nothing_behind() && tail_ - head_ < capacity) {
            queue_node* node = shelf_.pop();
            if (node == nullptr) {
                node = &overflow_.pop();
                --in_overflow_;
            }
            ring_[tail_++ % capacity] = node->coroutine;
        }
        end_ = nothing_behind() ? head_ + capacity : tail_;
        return true;
    }

    [[gnu::noinline, gnu::cold]] bool remove_from_overflow(queue_node& node) noexcept {
        if (shelf_.append(overflow_, in_overflow_)) {
            in_overflow_ = 0;
            return shelf_.remove(node);
        }
        const bool found = overflow_.remove(node); // no memory: the long way
        in_overflow_ -= found ? 1 : 0;
        return found;
    }

    // Running counters: a position is one of them modulo the capacity.
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t end_ = capacity; // where push() has to look again; never beyond head_ + capacity
    ready_shelf shelf_;            // younger than all that is in the ring
    fifo overflow_;                // younger than all that is on the shelf
    std::size_t in_overflow_ = 0;
    std::array<std::coroutine_handle<>, capacity> ring_;
};

} // namespace coil::detail
