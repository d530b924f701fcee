#pragma once

#include <coil/core/detail/queue.hpp>

namespace coil::detail {

/// An intrusive single-threaded FIFO queue from which any member can be removed in constant time,
/// so that cancelling n members is O(n). `PreviousOf` returns the pointer to the preceding node,
/// which is stored in the object around a node and is valid only while the node is queued.
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
    /// Inserts before all other nodes.
    void push_front(queue_node& node) noexcept {
        node.next = head_;
        PreviousOf(node) = nullptr;
        (head_ == nullptr ? tail_ : PreviousOf(*head_)) = &node;
        head_ = &node;
    }
    /// Removes the oldest node. Precondition: not empty.
    queue_node& pop() noexcept {
        queue_node& node = *head_;
        remove(node);
        return node;
    }
    /// Precondition: `node` is in this queue.
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
