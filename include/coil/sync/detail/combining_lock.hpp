#pragma once

#include <coil/core/detail/atomics.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

/// A combining lock, which protects the plain data of a primitive without blocking any thread.
///
/// A thread that finds the lock free acquires it. Otherwise it publishes its request, a node or a
/// signal, and returns; the owner processes all published requests before it releases the lock. One
/// word holds the `busy` bit, the published nodes (newest first), the `signalled` bit, and the
/// `open` bit, which belongs to the primitive that uses the lock and survives a release.
///
/// Releasing is the owner's last access. A thread that observes the owner's changes after the lock
/// was released may destroy the primitive.
template <class Node, class Atomics = std_atomics>
class basic_combining_lock {
public:
    struct pending_requests {
        Node* oldest = nullptr;
        bool signalled = false;
    };

    static constexpr std::uintptr_t open = 4;

    constexpr explicit basic_combining_lock(bool is_open = false) noexcept
        : word_(is_open ? open : 0) {}

    /// May be called from any thread. True: the caller owns the lock and processes `request`
    /// itself. False: `request` was published and may already be destroyed.
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

    /// May be called from any thread. Returns false if the lock is held.
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

    /// May be called from any thread. Publishes a signal and sets `bits` atomically with it.
    /// Returns true if the caller now owns the lock and processes the signal itself.
    [[nodiscard]] bool signal(std::uintptr_t bits = 0) noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        std::uintptr_t wanted = 0;
        do {
            wanted = seen | bits | ((seen & busy) != 0 ? signalled : busy);
        } while (!word_.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        return (seen & busy) == 0;
    }

    enum class outcome : unsigned char { entered, left, refused };

    /// May be called from any thread. Like signal(), for a caller whose signal must not merge with
    /// another. Returns `refused` if another signal has not been processed yet.
    [[nodiscard]] outcome signal_alone() noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed);
        std::uintptr_t wanted = 0;
        do {
            if ((seen & signalled) != 0) {
                return outcome::refused;
            }
            wanted = seen | ((seen & busy) != 0 ? signalled : busy);
        } while (!word_.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        return (seen & busy) == 0 ? outcome::entered : outcome::left;
    }

    /// Called by the owner. True: the lock was released. False: `left` holds further requests to
    /// process.
    [[nodiscard]] bool leave(pending_requests& left) noexcept {
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

    /// May be called from any thread. True: the lock is free, so everything done under it is
    /// finished.
    [[nodiscard]] bool is_free() const noexcept {
        return (word_.load(std::memory_order_acquire) & busy) == 0;
    }
    [[nodiscard]] bool is_open() const noexcept {
        return (word_.load(std::memory_order_acquire) & open) != 0;
    }
    [[nodiscard]] bool is_open_and_free() const noexcept {
        return (word_.load(std::memory_order_acquire) & (open | busy)) == open;
    }
    /// May be called from any thread. Clears the `open` bit. Spins while a signal is pending, so
    /// that every signal that has set the bit is processed first.
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
