#pragma once

#include <coil/core/queue.hpp>

namespace coil::detail {

/// Intrusive first-in first-out queue of one thread that any member can leave in constant time.
/// Cancelling n members is therefore O(n). `PreviousOf` maps a queued node to the pointer, stored
/// in the object around it, to the node ahead of it; it means something only while it is queued.
template <queue_node*& (*PreviousOf)(queue_node&) noexcept>
class linked_fifo {
public:
    linked_fifo() noexcept = default;
    linked_fifo(const linked_fifo&) = delete;
    linked_fifo& operator=(const linked_fifo&) = delete;

    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] queue_node* front() const noexcept { return head_; }

    void push(queue_node& node) noexcept {
        node.next = nullptr;
        PreviousOf(node) = tail_;
        (tail_ == nullptr ? head_ : tail_->next) = &node;
        tail_ = &node;
    }
    /// Ahead of all others.
    void push_front(queue_node& node) noexcept {
        node.next = head_;
        PreviousOf(node) = nullptr;
        (head_ == nullptr ? tail_ : PreviousOf(*head_)) = &node;
        head_ = &node;
    }
    /// The oldest node; the queue must not be empty.
    queue_node& pop() noexcept {
        queue_node& node = *head_;
        remove(node);
        return node;
    }
    /// `node` must be in this queue.
    void remove(queue_node& node) noexcept {
        queue_node* const previous = PreviousOf(node);
        (previous == nullptr ? head_ : previous->next) = node.next;
        (node.next == nullptr ? tail_ : PreviousOf(*node.next)) = previous;
    }

private:
    queue_node* head_ = nullptr;
    queue_node* tail_ = nullptr;
};

} // namespace coil::detail
