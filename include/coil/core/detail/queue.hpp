#pragma once

#include <coroutine>
#include <cstddef>

namespace coil::detail {

class event_loop;

/// The link of a member of an intrusive queue. It is part of the waiting object (an awaiter, a
/// promise), so queueing never allocates and never fails. A node is in one queue at a time; the
/// meaning of the second word depends on that queue. Both words are written when the node is queued
/// and are uninitialised before, because initialising them would slow down every await.
struct queue_node {
    queue_node() noexcept {} // NOLINT(*-member-init)

    queue_node* next;
    union {
        /// In a ready queue: the coroutine to resume.
        std::coroutine_handle<> coroutine;
        /// In an inbox: called on the owner thread.
        void (*deliver)(queue_node&, event_loop&) noexcept;
        /// In a stop source's list: called when a stop is requested.
        void (*on_stop)(queue_node&) noexcept;
    };
};

/// An intrusive single-threaded FIFO queue.
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

    /// Inserts before all other nodes.
    void push_front(queue_node& node) noexcept {
        node.next = head_;
        if (head_ == nullptr) {
            tail_ = &node.next;
        }
        head_ = &node;
    }

    /// Removes the oldest node. Precondition: not empty.
    queue_node& pop() noexcept {
        queue_node& node = *head_;
        head_ = node.next;
        if (head_ == nullptr) {
            tail_ = &head_;
        }
        return node;
    }

    /// Moves all nodes of `younger` to the end of this queue.
    void append(fifo& younger) noexcept {
        if (!younger.empty()) {
            *tail_ = younger.head_;
            tail_ = younger.tail_;
            younger.clear();
        }
    }

    [[nodiscard]] queue_node* front() const noexcept { return head_; }

    /// Calls `f` with the oldest nodes, at most `most` of them.
    template <class Function>
    void visit(Function f, std::size_t most) const {
        for (const queue_node* node = head_; node != nullptr && most > 0; --most) {
            f(*node);
            node = node->next;
        }
    }

    /// Removes `node`; returns false if it is not in the queue. Linear: only for frames that are
    /// destroyed while they wait, which is rare.
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
