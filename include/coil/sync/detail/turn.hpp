#pragma once

#include <coil/core/atomics.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

/// Whose turn it is to work on the plain data of a primitive, without anybody waiting for the turn.
///
/// Who finds it free has it. Who does not leaves what it wants, a node or a signal, and goes on:
/// the thread that has the turn cannot give it back before it has seen to that. One word says all:
/// free or `busy`; what was left, newest first; whether there was a signal; and the `open` bit,
/// which is the user's and survives.
///
/// Giving the turn back is the last access: what the primitive belongs to may be destroyed by
/// whoever learns of what was done in the turn, if it learns that after the turn was given back.
template <class Node, class Atomics = std_atomics>
class basic_turn {
public:
    struct news {
        Node* oldest = nullptr;
        bool signalled = false;
    };

    static constexpr std::uintptr_t open = 4;

    constexpr explicit basic_turn(bool is_open = false) noexcept : word_(is_open ? open : 0) {}

    /// Any thread. True: the caller has the turn, and sees to `request` itself. False: `request`
    /// was left, and may be gone.
    [[nodiscard]] bool enter(Node& request) noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        for (;;) {
            if ((seen & busy) == 0) {
                if (word_.compare_exchange_weak(seen, seen | busy, std::memory_order_acquire,
                                                std::memory_order_relaxed)) {
                    return true;
                }
            } else {
                request.next = node_of(seen);
                if (word_.compare_exchange_weak(seen, address_of(request) | (seen & flags),
                                                std::memory_order_release,
                                                std::memory_order_relaxed)) {
                    return false;
                }
            }
        }
    }

    /// Any thread. False: somebody else has it.
    [[nodiscard]] bool try_enter() noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        while ((seen & busy) == 0) {
            if (word_.compare_exchange_weak(seen, seen | busy, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }

    /// Any thread: says that there is something to look at, and sets `bits` with the same access.
    /// True: the caller has the turn, and looks itself.
    [[nodiscard]] bool signal(std::uintptr_t bits = 0) noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        std::uintptr_t wanted = 0;
        do {
            wanted = seen | bits | ((seen & busy) != 0 ? signalled : busy);
        } while (!word_.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        return (seen & busy) == 0;
    }

    enum class answer : unsigned char { entered, left, refused };

    /// Any thread: as signal(), for one who must know that his is the only one. Refused: there is
    /// another that has not been seen.
    [[nodiscard]] answer signal_alone() noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        std::uintptr_t wanted = 0;
        do {
            if ((seen & signalled) != 0) {
                return answer::refused;
            }
            wanted = seen | ((seen & busy) != 0 ? signalled : busy);
        } while (!word_.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        return (seen & busy) == 0 ? answer::entered : answer::left;
    }

    /// With the turn. True: it was given back. False: there is more to see to.
    [[nodiscard]] bool leave(news& left) noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        while ((seen & ~open) == busy) {
            if (word_.compare_exchange_weak(seen, seen & ~busy, std::memory_order_release,
                                            std::memory_order_relaxed)) {
                return true;
            }
        }
        seen = word_.fetch_and(busy | open, std::memory_order_acquire);
        left.signalled = (seen & signalled) != 0;
        left.oldest = nullptr;
        for (Node* newest = node_of(seen); newest != nullptr;) {
            Node* const following = static_cast<Node*>(newest->next);
            newest->next = left.oldest;
            left.oldest = newest;
            newest = following;
        }
        return false;
    }

    /// Any thread. Whether nobody has the turn: all that was done in turns before is over.
    [[nodiscard]] bool is_free() const noexcept {
        return (word_.load(std::memory_order_acquire) & busy) == 0;
    }
    [[nodiscard]] bool is_open() const noexcept {
        return (word_.load(std::memory_order_acquire) & open) != 0;
    }
    [[nodiscard]] bool is_open_and_free() const noexcept {
        return (word_.load(std::memory_order_acquire) & (open | busy)) == open;
    }
    /// Any thread: not before every signal that set the bit has been seen.
    void close() noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        for (;;) {
            if ((seen & signalled) != 0) {
                Atomics::yield();
                seen = word_.load(std::memory_order_relaxed);
            } else if (word_.compare_exchange_weak(seen, seen & ~open, std::memory_order_acq_rel,
                                                   std::memory_order_relaxed)) {
                return;
            }
        }
    }

private:
    static constexpr std::uintptr_t busy = 1;
    static constexpr std::uintptr_t signalled = 2;
    static constexpr std::uintptr_t flags = 7;

    static std::uintptr_t address_of(Node& node) noexcept {
        static_assert(alignof(Node) > flags);
        return reinterpret_cast<std::uintptr_t>(&node);
    }
    static Node* node_of(std::uintptr_t word) noexcept {
        return reinterpret_cast<Node*>(word & ~flags);
    }

    typename Atomics::template atomic<std::uintptr_t> word_;
};

} // namespace coil::detail
