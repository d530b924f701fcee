#pragma once

#include <coil/core/detail/indexed_overflow.hpp>
#include <coil/core/detail/queue.hpp>

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// The coroutines that are ready to run on one thread, first in, first out.
///
/// The front is a ring of handles. Taking the next one needs only the ring, so the processor can
/// fetch several frames in parallel; with a linked list it would have to fetch each frame to find
/// the next. Nodes that do not fit into the ring are in an intrusive list behind it, so pushing
/// never allocates and never fails, however long the queue grows (guarantee G6).
///
/// Removal scans the short ring. The list is singly linked, so the first removal from it moves all
/// of it into an array (indexed_overflow), where each node stores its index. Later removals are
/// O(1), and a queue without removals does not pay for them.
class ready_queue {
public:
    ready_queue() noexcept {
    } // NOLINT(*-member-init): only [head_, tail_) of the ring is initialised
    ready_queue(const ready_queue&) = delete;
    ready_queue& operator=(const ready_queue&) = delete;

    [[nodiscard]] bool empty() const noexcept {
        return head_ == tail_ && nothing_behind() && held_ == 0;
    }

    /// The number of coroutines in the queue.
    [[nodiscard]] std::size_t size() const noexcept {
        return tail_ - head_ + held_ + indexed_.size() + in_overflow_;
    }

    /// `node` belongs to the waiter. The queue uses it until the coroutine is resumed or removed.
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

    /// Removes and returns the oldest coroutine; the caller resumes it. Precondition: has_next()
    /// returned true.
    std::coroutine_handle<> pop() noexcept {
        immediate_awaits_left_ = immediate_awaits;
        return ring_[head_++ % capacity];
    }

    /// From now on has_next() returns false, until release() is called.
    void hold() noexcept {
        if (!is_held_) {
            is_held_ = true;
            held_ = tail_ - head_;
            tail_ = end_ = head_; // so the fast paths need no further check
        }
    }
    void release() noexcept {
        if (is_held_) {
            is_held_ = false;
            tail_ = head_ + held_;
            held_ = 0;
            end_ = nothing_behind() ? head_ + capacity : tail_;
        }
    }

    /// The number of awaits that a coroutine may complete per resumption without suspending. The
    /// next await that could complete immediately suspends the coroutine instead and queues it
    /// behind the others, so that a loop of such awaits cannot starve them (guarantee G7).
    static constexpr std::int32_t immediate_awaits = 128;
    /// Called by an await whose result is available. Returns whether it may complete without
    /// suspending.
    [[nodiscard]] bool spend_immediate_await() noexcept {
        // Below zero it goes on to decrease, and may wrap around: so this is a single instruction.
        immediate_awaits_left_ =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(immediate_awaits_left_) - 1);
        return immediate_awaits_left_ >= 0;
    }

    /// The coroutine that pop() returned last. If push() has filled the ring since then, its slot
    /// was reused and another coroutine is returned. May be called by a signal handler of the
    /// thread.
    [[nodiscard]] std::coroutine_handle<> last_popped() const noexcept {
        return ring_[(head_ - 1) % capacity];
    }
    /// The number of coroutines that pop() has returned, modulo 2^32. A reference, because the
    /// watchdog's thread copies the counter from this address with a system call.
    [[nodiscard]] const std::uint32_t& popped() const noexcept { return head_; }

    /// Removes a coroutine that was pushed with this node; returns false if it is not in the queue.
    /// For frames that are destroyed while they wait.
    bool remove(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        if (!indexed_.empty() && indexed_.remove(node)) {
            return true;
        }
        for (std::uint32_t i = head_; i != tail_ + held_; ++i) {
            if (ring_[i % capacity] == coroutine) {
                ring_[i % capacity] = std::noop_coroutine();
                return true;
            }
        }
        return !overflow_.empty() && remove_from_overflow(node);
    }

    /// Calls `f` with the next coroutines: those in the ring, and at most `most_behind` of those
    /// behind it.
    template <class Function>
    void visit(Function f, std::size_t most_behind = SIZE_MAX) const {
        for (std::uint32_t i = head_; i != tail_ + held_; ++i) {
            f(ring_[i % capacity]);
        }
        const auto visit_node = [&f](const queue_node& node) { f(node.coroutine); };
        overflow_.visit(visit_node, indexed_.visit(visit_node, most_behind));
    }

    void clear() noexcept {
        indexed_.clear();
        overflow_.clear();
        in_overflow_ = 0;
        is_held_ = false;
        held_ = 0;
        head_ = tail_;
        end_ = head_ + capacity;
    }

private:
    static constexpr std::uint32_t capacity = 2048;

    /// Extends the part of the ring that push() may use. Returns false if the ring is full, or if
    /// nodes wait behind it, which must run before a new one.
    bool extend() noexcept {
        if (is_held_ || !nothing_behind() || tail_ - head_ == capacity) {
            return false;
        }
        end_ = head_ + capacity;
        return true;
    }

    [[nodiscard]] bool nothing_behind() const noexcept {
        return overflow_.empty() && indexed_.empty();
    }

    [[gnu::noinline, gnu::cold]] bool refill() noexcept {
        if (is_held_) {
            return false;
        }
        while (!nothing_behind() && tail_ - head_ < capacity) {
            queue_node* node = indexed_.pop();
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
        if (indexed_.append(overflow_, in_overflow_)) {
            in_overflow_ = 0;
            return indexed_.remove(node);
        }
        const bool found = overflow_.remove(node); // no memory for the array: search the list
        in_overflow_ -= found ? 1 : 0;
        return found;
    }

    // Running counters; an index is a counter modulo the capacity.
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    // at this position push() takes the slow path; never beyond head_ + capacity
    std::uint32_t end_ = capacity;
    std::int32_t immediate_awaits_left_ = immediate_awaits; // of the current resumption
    indexed_overflow indexed_;                              // younger than everything in the ring
    fifo overflow_;                                         // younger than everything in indexed_
    std::size_t in_overflow_ = 0;
    std::uint32_t held_ = 0; // coroutines in the ring behind tail_
    bool is_held_ = false;
    std::array<std::coroutine_handle<>, capacity> ring_;
};

} // namespace coil::detail
