#pragma once

#include <coil/sync/detail/wait_queue.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

struct barrier_entry : sync_waiter {
    std::uint64_t phase = 0;
};

/// The state of a barrier. The thread that completes a phase spins until it owns the combining
/// lock, and changes the phase with the lock held. When its call returns, the phase has changed, so
/// an arrival that follows is counted in the next phase. A waiter that sees the new phase and a
/// free lock knows that the completing thread no longer accesses the barrier (see basic_group).
template <class Entry, class Waiter, class Atomics = std_atomics>
class basic_barrier
    : public basic_wait_queue<basic_barrier<Entry, Waiter, Atomics>, Waiter, Atomics> {
public:
    using wait_queue = basic_wait_queue<basic_barrier<Entry, Waiter, Atomics>, Waiter, Atomics>;
    using typename wait_queue::woken;

    explicit basic_barrier(std::ptrdiff_t expected) noexcept
        : left_(expected), expected_(expected) {}

    /// The current phase. Precondition: the caller has not arrived in it yet.
    [[nodiscard]] std::uint64_t phase() const noexcept {
        return phase_.load(std::memory_order_acquire);
    }
    /// Returns how many arrivals this phase still expects. The caller that gets 0 calls complete().
    /// A negative number means that there were more arrivals than participants.
    [[nodiscard]] std::ptrdiff_t arrive(std::ptrdiff_t n) noexcept {
        return left_.fetch_sub(n, std::memory_order_acq_rel) - n;
    }
    void complete() noexcept {
        this->with_lock([this](woken& t) { next_phase(t); });
    }
    void expect_one_less() noexcept { expected_.fetch_sub(1, std::memory_order_relaxed); }
    [[nodiscard]] bool is_over(std::uint64_t phase) const noexcept {
        return phase_.load(std::memory_order_acquire) != phase && this->combining_lock_.is_free();
    }

private:
    friend wait_queue;

    void enqueue(Waiter& w, woken& t) noexcept {
        if (static_cast<Entry&>(w).phase == phase_.load(std::memory_order_relaxed)) {
            this->queue_.push(w);
        } else {
            t.complete(w);
        }
    }
    [[nodiscard]] bool may_cancel(Waiter&) noexcept { return true; }
    void on_cancelled(woken&) noexcept {}
    void on_signal(woken&) noexcept {} // unused: nothing signals
    void next_phase(woken& t) noexcept {
        left_.store(expected_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        phase_.fetch_add(1, std::memory_order_release);
        while (!this->queue_.empty()) {
            t.complete(this->queue_.pop());
        }
    }

    // arrivals that this phase still expects
    typename Atomics::template atomic<std::ptrdiff_t> left_;
    typename Atomics::template atomic<std::ptrdiff_t> expected_;
    typename Atomics::template atomic<std::uint64_t> phase_{0};
};

struct no_completion {
    void operator()() noexcept {}
};

} // namespace coil::detail
