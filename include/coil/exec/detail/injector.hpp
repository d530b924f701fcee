#pragma once

#include <coil/core/config.hpp>
#include <coil/exec/detail/fences.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// The global queue of a pool, for work from other threads. One word holds the newest node (a
/// stack, which is reversed when it is taken), or null, or `armed` (workers sleep and none
/// searches), or `closed` (the pool was stopped).
///
/// A thread that finds it armed disarms it and wakes a worker *before* it pushes the node. The push
/// is therefore the last access to the pool: once the work is visible it may run and destroy the
/// pool. Workers sleep only after arming (see idle_workers.hpp), so none sleeps while a node that
/// was pushed without a wake-up waits.
///
/// Consumers must serialize their calls with a lock of their own.
template <class Node, class Atomics = pool_atomics>
class basic_injector {
public:
    /// May be called from any thread. Returns false if closed. `wake` wakes a worker unless one is
    /// searching.
    template <class Wake>
    [[nodiscard]] bool push(Node& node, Wake wake) noexcept {
        prefetch_to_write(&head_);
        std::uintptr_t head = head_.load(std::memory_order_relaxed);
        for (;;) {
            if (head <= closed) {
                if (head == closed) {
                    return false;
                }
                if (head == armed) {
                    if (head_.compare_exchange_strong(head, nothing, std::memory_order_acq_rel)) {
                        wake();
                        head = nothing;
                    }
                    continue;
                }
                node.next = nullptr;
            } else {
                node.next = reinterpret_cast<Node*>(head);
            }
            if (head_.compare_exchange_weak(head, reinterpret_cast<std::uintptr_t>(&node),
                                            std::memory_order_release, std::memory_order_relaxed)) {
                return true;
            }
        }
    }

    /// May be called from any thread. Returns false if the queue is not empty.
    [[nodiscard]] bool arm() noexcept {
        std::uintptr_t head = nothing;
        return head_.compare_exchange_strong(head, armed, std::memory_order_seq_cst) ||
               head <= closed;
    }

    /// May be called from any thread.
    [[nodiscard]] bool looks_empty() const noexcept {
        return head_.load(std::memory_order_relaxed) <= closed;
    }

    /// A list of nodes, oldest first.
    struct batch {
        Node* oldest = nullptr;
        std::size_t count = 0;
    };

    /// Consumer: removes all nodes.
    [[nodiscard]] batch take_all() noexcept {
        if (looks_empty()) {
            return {};
        }
        return in_order(head_.exchange(nothing, std::memory_order_acquire));
    }

    /// Consumer: removes all nodes; later pushes are refused.
    [[nodiscard]] batch close() noexcept {
        return in_order(head_.exchange(closed, std::memory_order_acq_rel));
    }

private:
    static constexpr std::uintptr_t nothing = 0;
    static constexpr std::uintptr_t armed = 1;
    static constexpr std::uintptr_t closed = 2;
    static_assert(alignof(Node) > closed);

    static batch in_order(std::uintptr_t head) noexcept {
        batch all;
        for (Node* newest = head <= closed ? nullptr : reinterpret_cast<Node*>(head);
             newest != nullptr;) {
            Node* const following = newest->next;
            newest->next = all.oldest;
            all.oldest = newest;
            ++all.count;
            newest = following;
        }
        return all;
    }

    typename Atomics::template atomic<std::uintptr_t> head_{nothing};
};

} // namespace coil::detail
