#pragma once

#include <coil/base/minmax.hpp>
#include <coil/sync/detail/wait_queue.hpp>

#include <atomic>
#include <cstddef>

namespace coil::detail {

/// A number of permits and their waiters: the base of semaphores, mutexes and auto-reset events.
///
/// `count_` is the number of free permits. A value of -n means that n requests have not been
/// promised a permit yet. A permit released while coroutines wait is promised to one of them
/// without becoming free, so a later request cannot take it. `due_`, which the combining lock
/// protects, is the number of permits that are promised but not yet assigned.
///
/// A signal stands for one permit. Publishing the signal is the last access of a release(): the
/// permit is assigned only afterwards, and a coroutine that knows that all permits were assigned
/// may destroy this object.
///
/// Handing a permit to another context costs many times more than handing it to a waiter of the
/// same context. The oldest waiter of the releasing context is therefore preferred if it is near
/// the front of the queue; the oldest waiter of all is passed over at most `max_passed` times.
///
/// Waiter must also have `is_here()`: whether its context runs on this thread.
template <class Waiter, class Atomics = std_atomics>
class basic_permits : public basic_wait_queue<basic_permits<Waiter, Atomics>, Waiter, Atomics> {
public:
    using wait_queue = basic_wait_queue<basic_permits<Waiter, Atomics>, Waiter, Atomics>;
    using typename wait_queue::woken;

    constexpr explicit basic_permits(std::ptrdiff_t free) noexcept : count_(free) {}

    [[nodiscard]] bool try_acquire() noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        while (seen > 0) {
            if (count_.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    /// If this returns false, the caller calls wait() next.
    [[nodiscard]] bool acquire() noexcept {
        return count_.fetch_sub(1, std::memory_order_acquire) > 0;
    }
    /// Returns the number of free permits before the call.
    std::ptrdiff_t release(std::ptrdiff_t n = 1) noexcept {
        const std::ptrdiff_t before = count_.fetch_add(n, std::memory_order_release);
        if (before < 0) {
            promise(min(n, -before));
        }
        return before;
    }
    /// Releases one permit, unless `most` are free.
    void release_up_to(std::ptrdiff_t most) noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        do {
            if (seen >= most) {
                return;
            }
        } while (!count_.compare_exchange_weak(seen, seen + 1, std::memory_order_release,
                                               std::memory_order_relaxed));
        if (seen < 0) {
            promise(1);
        }
    }
    [[nodiscard]] std::ptrdiff_t free() const noexcept {
        return count_.load(std::memory_order_acquire);
    }

private:
    friend wait_queue;

    void promise(std::ptrdiff_t n) noexcept {
        if (n == 1) {
            this->signal_alone();
        } else {
            this->with_lock([this, n](woken& t) { give(n, t); });
        }
    }

    void enqueue(Waiter& w, woken& t) noexcept {
        if (due_ > 0) { // a permit was promised before this waiter was in the queue
            due_ = due_ - 1;
            t.complete(w);
        } else {
            this->queue_.push(w);
        }
    }
    /// Returns false if every waiter has been promised a permit.
    [[nodiscard]] bool may_cancel(Waiter&) noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        while (seen < 0) {
            if (count_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed,
                                             std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    void on_cancelled(woken&) noexcept {}
    void on_signal(woken& t) noexcept { give(1, t); }
    void give(std::ptrdiff_t n, woken& t) noexcept {
        due_ = due_ + n;
        while (due_ > 0 && !this->queue_.empty()) {
            due_ = due_ - 1;
            Waiter& w = next();
            this->queue_.remove(w);
            t.complete(w);
        }
    }
    /// The waiter that gets the next permit. Precondition: the queue is not empty.
    [[nodiscard]] Waiter& next() noexcept {
        constexpr int max_passed = 32;
        constexpr int reach = 8;
        Waiter* const oldest = this->queue_.first();
        if (passed_ < max_passed) {
            Waiter* w = oldest;
            for (int i = 0; w != nullptr && i < reach; ++i, w = w->later) {
                if (w->is_here()) {
                    passed_ = w == oldest ? 0 : passed_ + 1;
                    return *w;
                }
            }
        }
        passed_ = 0;
        return *oldest;
    }

    typename Atomics::template atomic<std::ptrdiff_t> count_;
    // Protected by the combining lock.
    std::ptrdiff_t due_ = 0;
    int passed_ = 0; // how often in a row the oldest waiter was passed over
};

} // namespace coil::detail
