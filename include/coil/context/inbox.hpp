#pragma once

#include <coil/core/queue.hpp>

#include <atomic>

namespace coil::detail {

/// Where other threads leave work for a context: lock-free, intrusive, first in first out per
/// producer.
///
/// One word holds everything: the newest node (a stack, reversed when it is taken), or null when
/// the owner is awake with nothing to do, or `parked` when it sleeps. Because emptiness and parking
/// are the same word, a producer cannot push between the owner's last look and its sleep without
/// seeing `parked`, and exactly one producer sees it: that one pays for the wake-up call.
class alignas(64) inbox {
public:
    /// Any thread. True when the owner sleeps and the caller must wake it.
    [[nodiscard]] bool push(queue_node& node) noexcept {
        queue_node* head = head_.load(std::memory_order_relaxed);
        do {
            node.next = head == parked() ? nullptr : head;
        } while (!head_.compare_exchange_weak(head, &node, std::memory_order_release,
                                              std::memory_order_relaxed));
        return head == parked();
    }

    /// Any thread. True when the owner sleeps and the caller must wake it although nothing was
    /// pushed.
    [[nodiscard]] bool unpark_for_signal() noexcept {
        queue_node* expected = parked();
        return head_.compare_exchange_strong(expected, nullptr);
    }

    /// Owner. False when something arrived: do not sleep.
    [[nodiscard]] bool try_park() noexcept {
        queue_node* expected = nullptr;
        return head_.compare_exchange_strong(expected, parked());
    }

    /// Owner, after sleeping. False when another thread ended the sleep: its wake-up has come or
    /// will.
    bool unpark() noexcept {
        queue_node* expected = parked();
        return head_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
    }

    /// Owner, awake.
    [[nodiscard]] bool empty() const noexcept {
        return head_.load(std::memory_order_relaxed) == nullptr;
    }

    /// Owner, awake: everything there is, oldest first.
    [[nodiscard]] queue_node* take_all() noexcept {
        queue_node* newest = head_.exchange(nullptr, std::memory_order_acquire);
        queue_node* oldest = nullptr;
        while (newest != nullptr) {
            queue_node* following = newest->next;
            newest->next = oldest;
            oldest = newest;
            newest = following;
        }
        return oldest;
    }

private:
    queue_node* parked() noexcept { return &parked_; }

    std::atomic<queue_node*> head_{nullptr};
    queue_node parked_;
};

} // namespace coil::detail
