#pragma once

#include <coil/core/detail/atomics.hpp>
#include <coil/sync/detail/combining_lock.hpp>

#include <type_traits>
#include <utility>

namespace coil::detail {

/// The waiters, oldest first. A Waiter has the links `later` and `earlier`, and `queued`, which
/// says whether it is in a list.
template <class Waiter>
class wait_list {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] Waiter* first() const noexcept { return first_; }

    void push(Waiter& w) noexcept {
        w.later = nullptr;
        w.earlier = last_;
        w.queued = true;
        if (Waiter* const before = last_; before != nullptr) {
            before->later = &w;
        } else {
            first_ = &w;
        }
        last_ = &w;
    }
    void remove(Waiter& w) noexcept {
        Waiter* const later = w.later;
        Waiter* const earlier = w.earlier;
        (earlier != nullptr ? earlier->later : first_) = later;
        (later != nullptr ? later->earlier : last_) = earlier;
        w.queued = false;
    }
    /// Removes the oldest waiter. Precondition: not empty.
    Waiter& pop() noexcept {
        Waiter& w = *first_;
        remove(w);
        return w;
    }

private:
    using link = std::remove_cvref_t<decltype(std::declval<Waiter&>().later)>;

    link first_{nullptr};
    link last_{nullptr};
};

/// The waiters to notify, in order, after the combining lock was released.
template <class Waiter>
class wake_list {
public:
    using notice = typename Waiter::notice;
    using node = typename Waiter::lock_node;

    /// Marks the wait of `w` as complete.
    void complete(Waiter& w) noexcept { push(w.enqueue_notice); }
    /// Acknowledges that the request of `w` to leave was processed.
    void acknowledge_cancel(Waiter& w) noexcept { push(w.cancel_notice); }

    void notify() noexcept {
        while (first_ != nullptr) {
            notice& n = *first_;
            // read before notify(), which may destroy the notice
            first_ = static_cast<notice*>(static_cast<node*>(n.next));
            n.waiter->notify(n);
        }
    }

private:
    void push(notice& n) noexcept {
        n.next = nullptr;
        if (first_ == nullptr) {
            first_ = &n;
        } else {
            last_->next = &n;
        }
        last_ = &n;
    }

    notice* first_ = nullptr;
    notice* last_ = nullptr;
};

/// The queue in which coroutines of any context wait for a primitive.
///
/// Waiters are processed only by the owner of the combining lock (basic_combining_lock), as the
/// primitive's `Rules` say; they are notified after it has released the lock. A waiter that leaves
/// publishes its request in the same way as its arrival. It gets one `acknowledge_cancel` for each
/// request to leave and, unless such a request has removed it from the queue, one `complete` for
/// its wait. It may be destroyed when none is outstanding.
///
/// Waiter: `lock_node` {next}; `notice` {waiter}, derived from it; `enqueue_notice` and
/// `cancel_notice` of that type; the links of wait_list; `cancelled`; `notify(notice&)`, called on
/// any thread without the lock; optionally `queue_destroyed(const void*)`, called if the queue is
/// destroyed while it is the first waiter.
///
/// Rules, all called with the lock held:
/// - `enqueue(w, woken)`: queues the waiter or completes its wait.
/// - `may_cancel(w)`: a queued waiter requests to leave. Returns false if its wait is already about
///   to complete.
/// - `on_cancelled(woken)`: a waiter has left the queue.
/// - `on_signal(woken)`: there was a signal.
/// - `queue_of(w)`, if there is more than one queue.
template <class Rules, class Waiter, class Atomics = std_atomics>
class basic_wait_queue {
public:
    using woken = wake_list<Waiter>;

    /// Called on the waiter's thread.
    void wait(Waiter& w) noexcept {
        if (combining_lock_.enter(w.enqueue_notice)) {
            woken t;
            rules().enqueue(w, t);
            release_and_wake(t);
        }
    }
    /// Called on the waiter's thread, which then waits for the acknowledgement.
    void leave(Waiter& w) noexcept {
        if (combining_lock_.enter(w.cancel_notice)) {
            woken t;
            cancel(w, t);
            release_and_wake(t);
        }
    }

protected:
    using node = typename Waiter::lock_node;

    ~basic_wait_queue() { check_unused(queue_); }

    /// Called by the destructor for each of its lists.
    static void check_unused(const wait_list<Waiter>& list) noexcept {
        if constexpr (requires(Waiter& w) { w.queue_destroyed(nullptr); }) {
            if (!list.empty()) [[unlikely]] {
                list.first()->queue_destroyed(&list);
            }
        }
    }

    /// May be called from any thread. Causes one call of on_signal() that sees everything before
    /// the signal.
    void signal(std::uintptr_t bits = 0) noexcept {
        if (combining_lock_.signal(bits)) {
            woken t;
            rules().on_signal(t);
            release_and_wake(t);
        }
    }
    /// May be called from any thread. Causes one call of on_signal() for this signal alone. Spins
    /// while another signal is pending.
    void signal_alone() noexcept {
        using outcome = typename basic_combining_lock<node, Atomics>::outcome;
        outcome given = combining_lock_.signal_alone();
        while (given == outcome::refused) {
            Atomics::yield();
            given = combining_lock_.signal_alone();
        }
        if (given == outcome::entered) {
            woken t;
            rules().on_signal(t);
            release_and_wake(t);
        }
    }
    /// May be called from any thread. Runs `f` with the lock held, for calls that need their result
    /// immediately; spins until the lock is free.
    template <class F>
    void with_lock(F&& f) noexcept {
        while (!combining_lock_.try_enter()) {
            Atomics::yield();
        }
        woken t;
        std::forward<F>(f)(t);
        release_and_wake(t);
    }
    /// The same, but returns false if the lock is still held after `attempts` attempts.
    template <class F>
    [[nodiscard]] bool try_with_lock(F&& f, int attempts = 50) noexcept {
        for (int i = 0; i < attempts; ++i) {
            if (combining_lock_.try_enter()) {
                woken t;
                std::forward<F>(f)(t);
                release_and_wake(t);
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] wait_list<Waiter>& queue_of(Waiter&) noexcept { return queue_; }

    basic_combining_lock<node, Atomics> combining_lock_;
    wait_list<Waiter> queue_; // protected by the combining lock

private:
    friend Rules;

    constexpr basic_wait_queue() noexcept = default;
    constexpr explicit basic_wait_queue(bool is_open) noexcept : combining_lock_(is_open) {}

    Rules& rules() noexcept { return static_cast<Rules&>(*this); }

    void cancel(Waiter& w, woken& t) noexcept {
        if (w.queued && rules().may_cancel(w)) {
            rules().queue_of(w).remove(w);
            w.cancelled = true;
            rules().on_cancelled(t);
        }
        t.acknowledge_cancel(w);
    }

    void release_and_wake(woken& t) noexcept {
        typename basic_combining_lock<node, Atomics>::pending_requests left;
        while (!combining_lock_.leave(left)) {
            while (left.oldest != nullptr) {
                auto& n = static_cast<typename Waiter::notice&>(*left.oldest);
                left.oldest = static_cast<node*>(n.next);
                Waiter& w = *n.waiter;
                if (&n == &w.enqueue_notice) {
                    rules().enqueue(w, t);
                } else {
                    cancel(w, t);
                }
            }
            if (left.signalled) {
                rules().on_signal(t);
            }
        }
        t.notify(); // the queue may be destroyed from here on
    }
};

} // namespace coil::detail
