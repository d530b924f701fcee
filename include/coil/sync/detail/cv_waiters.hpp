#pragma once

#include <coil/base/minmax.hpp>
#include <coil/sync/detail/wait_queue.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <atomic>
#include <cstddef>

namespace coil::detail {

/// The waiters of a condition variable.
///
/// The owner of the combining lock may process a notification before a waiter for which it is
/// intended has been queued. `due_` then counts the outstanding notifications, for coroutines that
/// have called announce() but are not queued yet. At worst this causes a spurious wake-up of a
/// coroutine that announced itself later.
template <class Waiter, class Atomics = std_atomics>
class basic_cv_waiters
    : public basic_wait_queue<basic_cv_waiters<Waiter, Atomics>, Waiter, Atomics> {
public:
    using wait_queue = basic_wait_queue<basic_cv_waiters<Waiter, Atomics>, Waiter, Atomics>;
    using typename wait_queue::woken;

    /// Called before wait() and before the mutex is unlocked.
    void announce() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
    void notify_one() noexcept {
        if (waiting_.load(std::memory_order_relaxed) > 0) {
            ones_.fetch_add(1, std::memory_order_release);
            this->signal();
        }
    }
    void notify_all() noexcept {
        if (waiting_.load(std::memory_order_relaxed) > 0) {
            all_.store(true, std::memory_order_release);
            this->signal();
        }
    }

private:
    friend wait_queue;

    void enqueue(Waiter& w, woken& t) noexcept {
        if (due_ > 0) { // then the queue is empty
            due_ = due_ - 1;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            t.complete(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_cancel(Waiter&) noexcept { return true; }
    void on_cancelled(woken&) noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }
    void on_signal(woken& t) noexcept {
        const std::size_t n = ones_.exchange(0, std::memory_order_acquire);
        const bool all = all_.exchange(false, std::memory_order_acquire);
        // Read afterwards, so that it includes every coroutine these notifications are meant for.
        const std::size_t waiting = waiting_.load(std::memory_order_relaxed);
        due_ = all ? waiting : min(due_ + n, waiting);
        while (due_ > 0 && !this->queue_.empty()) {
            due_ = due_ - 1;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            t.complete(this->queue_.pop());
        }
    }

    typename Atomics::template atomic<std::size_t> waiting_{0}; // announced and not notified yet
    typename Atomics::template atomic<std::size_t> ones_{0};
    typename Atomics::template atomic<bool> all_{false};
    std::size_t due_ = 0; // protected by the combining lock; at most `waiting_`
};

} // namespace coil::detail
