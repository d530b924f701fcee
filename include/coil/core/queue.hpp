#pragma once

#include <coroutine>

namespace coil::detail {

class event_loop;

/// The link by which everything that waits its turn hangs in a queue. It lives inside the waiter
/// (an awaiter, a promise), so queueing never allocates and never fails. What the second word means
/// depends on the queue that holds the node; a node is in one queue at a time. Both words are
/// written when it is queued and mean nothing before, so they start out unset: every await would
/// pay for it.
struct queue_node {
    queue_node() noexcept {} // NOLINT(*-member-init)

    queue_node* next;
    union {
        /// In a ready queue: the coroutine to resume.
        std::coroutine_handle<> coroutine;
        /// In an inbox: what the owner thread does with the node.
        void (*deliver)(queue_node&, event_loop&) noexcept;
        /// In a stop source's list: what a requested stop calls.
        void (*on_stop)(queue_node&) noexcept;
    };
};

/// Intrusive first-in first-out queue of one thread.
class fifo {
public:
    fifo() noexcept = default;
    fifo(const fifo&) = delete;
    fifo& operator=(const fifo&) = delete;

    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

    void push(queue_node& node) noexcept {
        node.next = nullptr;
        *tail_ = &node;
        tail_ = &node.next;
    }

    /// Before all others.
    void push_front(queue_node& node) noexcept {
        node.next = head_;
        if (head_ == nullptr) {
            tail_ = &node.next;
        }
        head_ = &node;
    }

    /// The oldest node; the queue must not be empty.
    queue_node& pop() noexcept {
        queue_node& node = *head_;
        head_ = node.next;
        if (head_ == nullptr) {
            tail_ = &head_;
        }
        return node;
    }

    /// All of `younger` behind what is here.
    void append(fifo& younger) noexcept {
        if (!younger.empty()) {
            *tail_ = younger.head_;
            tail_ = younger.tail_;
            younger.clear();
        }
    }

    [[nodiscard]] queue_node* front() const noexcept { return head_; }

    /// Takes `node` out wherever it stands; false when it is not there. Linear: only for frames
    /// that are destroyed while they wait, which is rare.
    bool remove(queue_node& node) noexcept {
        for (queue_node** link = &head_; *link != nullptr; link = &(*link)->next) {
            if (*link == &node) {
                *link = node.next;
                if (tail_ == &node.next) {
                    tail_ = link;
                }
                return true;
            }
        }
        return false;
    }

    void clear() noexcept {
        head_ = nullptr;
        tail_ = &head_;
    }

private:
    queue_node* head_ = nullptr;
    queue_node** tail_ = &head_;
};

} // namespace coil::detail
