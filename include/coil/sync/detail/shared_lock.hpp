#pragma once

#include <coil/sync/detail/wait_queue.hpp>

#include <atomic>
#include <cstddef>

namespace coil::detail {

/// A readers-writer lock. `state_` holds a writer bit, a waiting bit, and the number of readers.
/// While the waiting bit is set no thread acquires the lock directly, so writers do not starve. A
/// thread that unlocks sees the bit and signals; the owner of the combining lock then grants the
/// lock to the oldest waiter and, if that is a reader, to the readers directly behind it.
///
/// Entry: a Waiter with `shared`.
template <class Entry, class Waiter, class Atomics = std_atomics>
class basic_shared_lock
    : public basic_wait_queue<basic_shared_lock<Entry, Waiter, Atomics>, Waiter, Atomics> {
public:
    using wait_queue = basic_wait_queue<basic_shared_lock<Entry, Waiter, Atomics>, Waiter, Atomics>;
    using typename wait_queue::woken;

    [[nodiscard]] bool try_lock() noexcept {
        std::size_t seen = 0;
        return state_.compare_exchange_strong(seen, writer, std::memory_order_acquire);
    }
    [[nodiscard]] bool try_lock_shared() noexcept {
        std::size_t seen = state_.load(std::memory_order_relaxed);
        while ((seen & (writer | waiting)) == 0) {
            if (state_.compare_exchange_weak(seen, seen + reader, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    /// Returns false if the lock was not held in this mode; the state is then undefined.
    bool unlock() noexcept {
        const std::size_t before = state_.fetch_sub(writer, std::memory_order_release);
        if ((before & waiting) != 0) {
            this->signal();
        }
        return (before & writer) != 0;
    }
    bool unlock_shared() noexcept {
        const std::size_t before = state_.fetch_sub(reader, std::memory_order_release);
        if (before - reader == waiting) {
            this->signal();
        }
        return before >= reader;
    }
    [[nodiscard]] bool is_free() const noexcept {
        return state_.load(std::memory_order_acquire) == 0;
    }

private:
    friend wait_queue;

    static constexpr std::size_t writer = 1;
    static constexpr std::size_t waiting = 2;
    static constexpr std::size_t reader = 4;

    void enqueue(Waiter& w, woken& t) noexcept {
        this->queue_.push(w);
        on_signal(t);
    }
    [[nodiscard]] bool may_cancel(Waiter&) noexcept { return true; }
    void on_cancelled(woken& t) noexcept { on_signal(t); }

    void on_signal(woken& t) noexcept {
        while (!this->queue_.empty() && give(*this->queue_.first())) {
            t.complete(this->queue_.pop());
        }
        if (this->queue_.empty()) {
            state_.fetch_and(~waiting, std::memory_order_relaxed);
        }
    }
    /// Grants the lock to `w`, or sets the waiting bit.
    [[nodiscard]] bool give(Waiter& w) noexcept {
        const bool shared = static_cast<Entry&>(w).shared;
        std::size_t seen = state_.load(std::memory_order_relaxed);
        for (;;) {
            const bool is_free = shared ? (seen & writer) == 0 : (seen & ~waiting) == 0;
            const std::size_t wanted = !is_free ? seen | waiting
                                       : shared ? seen + reader
                                                : seen | writer;
            if (state_.compare_exchange_weak(seen, wanted, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
                return is_free;
            }
        }
    }

    typename Atomics::template atomic<std::size_t> state_{0};
};

} // namespace coil::detail
