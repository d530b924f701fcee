#pragma once

#include <coil/core/config.hpp>
#include <coil/exec/detail/fences.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// Where threads that are no workers of a pool leave work for it. One word: the newest node (a
/// stack, reversed when it is taken), or nothing, or `armed`: workers sleep and none looks for
/// work, or `closed`: the pool was stopped.
///
/// Whoever finds it armed disarms it and wakes a worker *before* leaving the node. So leaving it is
/// the last thing that is done to the pool: once the work is there it may run, and end the pool.
/// Workers sleep only after they have armed it (sleepers.hpp says who does that when), so nobody
/// sleeps while a node that was left without a wake-up waits.
///
/// Those who take are ordered by a lock of theirs.
template <class Node, class Atomics = pool_atomics>
class basic_injector {
public:
    /// Any thread. False: it is closed. `wake` wakes a worker unless one is looking for work.
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

    /// Any thread. False: there is something.
    [[nodiscard]] bool arm() noexcept {
        std::uintptr_t head = nothing;
        return head_.compare_exchange_strong(head, armed, std::memory_order_seq_cst) ||
               head <= closed;
    }

    /// Any thread.
    [[nodiscard]] bool looks_empty() const noexcept {
        return head_.load(std::memory_order_relaxed) <= closed;
    }

    /// Some nodes, oldest first.
    struct batch {
        Node* oldest = nullptr;
        std::size_t count = 0;
    };

    /// Whoever may take: all there is.
    [[nodiscard]] batch take_all() noexcept {
        if (looks_empty()) {
            return {};
        }
        return in_order(head_.exchange(nothing, std::memory_order_acquire));
    }

    /// Whoever may take: the same, and nothing more comes.
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
