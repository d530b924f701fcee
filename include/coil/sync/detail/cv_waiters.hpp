#pragma once

#include <coil/sync/detail/wait_queue.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace coil::detail {

/// The waiters of a condition variable.
///
/// The owner of the combining lock may process a notification before the arrival of a waiter that
/// it is meant for. `due_` then holds the rest of the notification, for coroutines that have called
/// announce() and not arrived yet. At worst it causes a spurious wake-up of a coroutine that
/// announced itself later.
template <class Waiter, class Atomics = std_atomics>
class basic_audience : public basic_wait_room<basic_audience<Waiter, Atomics>, Waiter, Atomics> {
public:
    using room = basic_wait_room<basic_audience<Waiter, Atomics>, Waiter, Atomics>;
    using typename room::told;

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
    friend room;

    void arrive(Waiter& w, told& t) noexcept {
        if (due_ > 0) { // then the queue is empty
            due_ = due_ - 1;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            t.over(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_leave(Waiter&) noexcept { return true; }
    void left(told&) noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }
    void look(told& t) noexcept {
        const std::size_t n = ones_.exchange(0, std::memory_order_acquire);
        const bool all = all_.exchange(false, std::memory_order_acquire);
        // Read after that, so that it includes every coroutine these notifications are meant for.
        const std::size_t waiting = waiting_.load(std::memory_order_relaxed);
        due_ = all ? waiting : std::min(due_ + n, waiting);
        while (due_ > 0 && !this->queue_.empty()) {
            due_ = due_ - 1;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            t.over(this->queue_.pop());
        }
    }

    typename Atomics::template atomic<std::size_t> waiting_{0}; // announced and not notified yet
    typename Atomics::template atomic<std::size_t> ones_{0};
    typename Atomics::template atomic<bool> all_{false};
    std::size_t due_ = 0; // protected by the combining lock; at most `waiting_`
};

} // namespace coil::detail
