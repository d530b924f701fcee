#pragma once

#include <coil/sync/detail/wait_queue.hpp>

namespace coil::detail {

/// The base of manual-reset events, latches and oneshots: wait() completes immediately while the
/// baton is open.
///
/// A caller for which passes() returns true knows that open() no longer uses the baton, and may
/// destroy it.
template <class Waiter, class Atomics = std_atomics>
class basic_baton : public basic_wait_queue<basic_baton<Waiter, Atomics>, Waiter, Atomics> {
public:
    using wait_queue = basic_wait_queue<basic_baton<Waiter, Atomics>, Waiter, Atomics>;
    using typename wait_queue::woken;

    constexpr explicit basic_baton(bool is_open) noexcept : wait_queue(is_open) {}

    /// If this returns false, the caller calls wait() next.
    [[nodiscard]] bool passes() const noexcept { return this->combining_lock_.is_open_and_free(); }
    [[nodiscard]] bool is_open() const noexcept { return this->combining_lock_.is_open(); }

    /// Resumes all waiters, even if close() follows immediately.
    void open() noexcept { this->signal(this->combining_lock_.open); }
    void close() noexcept { this->combining_lock_.close(); }

private:
    friend wait_queue;

    void enqueue(Waiter& w, woken& t) noexcept {
        if (is_open()) {
            t.complete(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_cancel(Waiter&) noexcept { return true; }
    void on_cancelled(woken&) noexcept {}
    void on_signal(woken& t) noexcept {
        while (!this->queue_.empty()) {
            t.complete(this->queue_.pop());
        }
    }
};

} // namespace coil::detail
