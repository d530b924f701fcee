#pragma once

#include <coil/sync/detail/wait_queue.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <atomic>
#include <cstddef>

namespace coil::detail {

/// The state of a wait_group. The last done() is executed with the combining lock held. A thread
/// that sees zero and a free lock therefore knows that no other thread in done() will access the
/// group again.
template <class Waiter, class Atomics = std_atomics>
class basic_group : public basic_wait_queue<basic_group<Waiter, Atomics>, Waiter, Atomics> {
public:
    using wait_queue = basic_wait_queue<basic_group<Waiter, Atomics>, Waiter, Atomics>;
    using typename wait_queue::woken;

    constexpr explicit basic_group(std::ptrdiff_t count = 0) noexcept : count_(count) {}

    void add(std::ptrdiff_t n) noexcept { count_.fetch_add(n, std::memory_order_relaxed); }
    /// Precondition: n > 0. Returns false if the count is less than n.
    [[nodiscard]] bool done(std::ptrdiff_t n = 1) noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        while (seen > n || (seen == n && n > 1)) {
            const std::ptrdiff_t rest = seen > n ? seen - n : 1;
            if (count_.compare_exchange_weak(seen, rest, std::memory_order_release,
                                             std::memory_order_relaxed)) {
                if (seen > n) {
                    return true;
                }
                seen = n = 1; // the last one is counted down in on_signal(), with the lock held
            }
        }
        if (seen < n) {
            return false;
        }
        this->signal();
        return true;
    }
    [[nodiscard]] bool passes() const noexcept {
        return count_.load(std::memory_order_acquire) == 0 && this->combining_lock_.is_free();
    }

private:
    friend wait_queue;

    void enqueue(Waiter& w, woken& t) noexcept {
        if (count_.load(std::memory_order_acquire) == 0) {
            t.complete(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_cancel(Waiter&) noexcept { return true; }
    void on_cancelled(woken&) noexcept {}
    void on_signal(woken& t) noexcept {
        if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            while (!this->queue_.empty()) {
                t.complete(this->queue_.pop());
            }
        }
    }

    typename Atomics::template atomic<std::ptrdiff_t> count_;
};

} // namespace coil::detail
