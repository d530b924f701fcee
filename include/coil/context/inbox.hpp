#pragma once

#include <coil/core/atomics.hpp>
#include <coil/core/config.hpp>
#include <coil/core/queue.hpp>

#include <atomic>

namespace coil::detail {

/// Where other threads leave work for a context: lock-free, intrusive, first in first out per
/// producer. Belongs on a line of its own, or with what its producers write as well.
///
/// One word holds everything: the newest node (a stack, reversed when it is taken), or null when
/// the owner is awake with nothing to do, or `parked` when it sleeps. Because emptiness and parking
/// are the same word, a producer cannot push between the owner's last look and its sleep without
/// seeing `parked`, and exactly one producer sees it: that one pays for the wake-up call.
template <class Node, class Atomics = std_atomics>
class basic_inbox {
public:
    /// Any thread. True when the owner sleeps and the caller must wake it.
    [[nodiscard]] bool push(Node& node) noexcept {
        prefetch_to_write(&head_);
        Node* head = head_.load(std::memory_order_relaxed);
        do {
            node.next = head == parked() ? nullptr : head;
        } while (!head_.compare_exchange_weak(head, &node, std::memory_order_release,
                                              std::memory_order_relaxed));
        return head == parked();
    }

    /// Any thread. True when the owner sleeps and the caller must wake it although nothing was
    /// pushed.
    [[nodiscard]] bool unpark_for_signal() noexcept {
        Node* expected = parked();
        return head_.compare_exchange_strong(expected, nullptr);
    }

    /// Owner. False when something arrived: do not sleep.
    [[nodiscard]] bool try_park() noexcept {
        Node* expected = nullptr;
        return head_.compare_exchange_strong(expected, parked());
    }

    /// Owner, after sleeping. False when another thread ended the sleep: its wake-up has come or
    /// will.
    bool unpark() noexcept {
        Node* expected = parked();
        return head_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
    }

    /// Whether nobody has ended the sleep that try_park() announced.
    [[nodiscard]] bool is_parked() noexcept {
        return head_.load(std::memory_order_seq_cst) == parked();
    }

    /// Owner, awake.
    [[nodiscard]] bool empty() const noexcept {
        return head_.load(std::memory_order_relaxed) == nullptr;
    }

    /// Owner, awake: everything there is, oldest first.
    [[nodiscard]] Node* take_all() noexcept {
        const auto* const first =
            reinterpret_cast<const char*>(head_.load(std::memory_order_relaxed));
        if (first == nullptr) {
            return nullptr;
        }
        // While the line of the head comes. A node of a frame is in its first line, and what
        // resuming it needs in the next ones.
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
