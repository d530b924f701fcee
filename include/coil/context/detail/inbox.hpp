#pragma once

#include <coil/core/config.hpp>
#include <coil/core/detail/atomics.hpp>
#include <coil/core/detail/queue.hpp>

#include <atomic>

namespace coil::detail {

/// A lock-free intrusive MPSC queue by which other threads pass work to a context; first in, first
/// out per producer. Place it on a cache line of its own, or with other data that its producers
/// write.
///
/// The state is one word: the newest node of a stack, which is reversed when it is taken; or null
/// if the inbox is empty and the owner is awake; or `parked` if it sleeps. Because emptiness and
/// parking share the word, a producer cannot push between the owner's last check and its sleep
/// without seeing `parked`. Exactly one producer sees it and makes the wake-up call.
template <class Node, class Atomics = std_atomics>
class basic_inbox {
public:
    /// May be called from any thread. Returns true if the owner sleeps and the caller must wake it.
    [[nodiscard]] bool push(Node& node) noexcept {
        prefetch_to_write(&head_);
        Node* head = head_.load(std::memory_order_relaxed);
        do {
            node.next = head == parked() ? nullptr : head;
        } while (!head_.compare_exchange_weak(head, &node, std::memory_order_release,
                                              std::memory_order_relaxed));
        return head == parked();
    }

    /// May be called from any thread. Returns true if the owner sleeps and the caller must wake it
    /// although nothing was pushed.
    [[nodiscard]] bool unpark_for_signal() noexcept {
        Node* expected = parked();
        return head_.compare_exchange_strong(expected, nullptr);
    }

    /// Owner only. Returns false if a node has arrived; the owner then must not sleep.
    [[nodiscard]] bool try_park() noexcept {
        Node* expected = nullptr;
        return head_.compare_exchange_strong(expected, parked());
    }

    /// Owner only, after sleeping. Returns false if another thread ended the sleep: its wake-up
    /// call has been made or will be.
    bool unpark() noexcept {
        Node* expected = parked();
        return head_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
    }

    /// Whether no other thread has ended the sleep announced by try_park().
    [[nodiscard]] bool is_parked() noexcept {
        return head_.load(std::memory_order_seq_cst) == parked();
    }

    /// Any thread.
    [[nodiscard]] bool holds_nothing() noexcept {
        Node* const head = head_.load(std::memory_order_seq_cst);
        return head == nullptr || head == parked();
    }

    /// Owner only, while awake.
    [[nodiscard]] bool empty() const noexcept {
        return head_.load(std::memory_order_relaxed) == nullptr;
    }

    /// Owner only, while awake: removes all nodes, oldest first.
    [[nodiscard]] Node* take_all() noexcept {
        const auto* const first =
            reinterpret_cast<const char*>(head_.load(std::memory_order_relaxed));
        if (first == nullptr) {
            return nullptr;
        }
        // Prefetched while the line of the head is being loaded. The node of a frame is in its
        // first cache line, and what resuming it needs is in the next ones.
        prefetch_to_write(first);
        prefetch_to_write(first + 64);
        prefetch_to_write(first + 128);
        Node* newest = head_.exchange(nullptr, std::memory_order_acquire);
        Node* oldest = nullptr;
        while (newest != nullptr) {
            Node* following = newest->next;
            newest->next = oldest;
            oldest = newest;
            newest = following;
        }
        return oldest;
    }

private:
    Node* parked() noexcept { return &parked_; }

    typename Atomics::template atomic<Node*> head_{nullptr};
    Node parked_;
};

using inbox = basic_inbox<queue_node>;

} // namespace coil::detail
