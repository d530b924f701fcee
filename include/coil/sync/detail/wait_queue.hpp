#pragma once

#include <coil/core/atomics.hpp>
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
    using node = typename Waiter::turn_node;

    /// Its wait is complete.
    void over(Waiter& w) noexcept { push(w.arrival); }
    /// Its request to leave was processed.
    void answered(Waiter& w) noexcept { push(w.departure); }

    void tell() noexcept {
        while (first_ != nullptr) {
            notice& n = *first_;
            // read before tell(), which may destroy the notice
            first_ = static_cast<notice*>(static_cast<node*>(n.next));
            n.waiter->tell(n);
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
/// Waiters are processed only by the owner of the combining lock (basic_turn), as the primitive's
/// `Rules` say; they are notified after it has released the lock. A waiter that wants to leave
/// publishes that request in the same way as its arrival. It gets one `over` for its wait and one
/// `answered` for each request to leave, and may be destroyed when none is outstanding.
///
/// Waiter: `turn_node` {next}; `notice` {waiter}, derived from it; `arrival` and `departure` of
/// that type; the links of wait_list; `cancelled`; `tell(notice&)`, called on any thread without
/// the lock.
///
/// Rules, all called with the lock held:
/// - `arrive(w, told)`: queues the waiter or completes its wait.
/// - `may_leave(w)`: a queued waiter wants to leave. Returns false if what it waits for is already
///   on its way.
/// - `left(told)`: a waiter has left the queue.
/// - `look(told)`: there was a signal.
/// - `queue_of(w)`, if there is more than one queue.
template <class Rules, class Waiter, class Atomics = std_atomics>
class basic_wait_room {
public:
    using told = wake_list<Waiter>;

    /// Called on the waiter's thread.
    void wait(Waiter& w) noexcept {
        if (turn_.enter(w.arrival)) {
            told t;
            rules().arrive(w, t);
            end_turn(t);
        }
    }
    /// Called on the waiter's thread, which then waits for the answer.
    void leave(Waiter& w) noexcept {
        if (turn_.enter(w.departure)) {
            told t;
            depart(w, t);
            end_turn(t);
        }
    }

protected:
    using node = typename Waiter::turn_node;

    ~basic_wait_room() = default;

    /// May be called from any thread. Causes one call of look() that sees everything before the
    /// signal.
    void signal(std::uintptr_t bits = 0) noexcept {
        if (turn_.signal(bits)) {
            told t;
            rules().look(t);
            end_turn(t);
        }
    }
    /// May be called from any thread. Causes one call of look() for this signal alone. Spins while
    /// another signal is pending.
    void signal_alone() noexcept {
        using answer = typename basic_turn<node, Atomics>::answer;
        answer given = turn_.signal_alone();
        while (given == answer::refused) {
            Atomics::yield();
            given = turn_.signal_alone();
        }
        if (given == answer::entered) {
            told t;
            rules().look(t);
            end_turn(t);
        }
    }
    /// May be called from any thread. Runs `f` with the lock held, for calls that need their result
    /// at once; spins until the lock is free.
    template <class F>
    void in_turn(F&& f) noexcept {
        while (!turn_.try_enter()) {
            Atomics::yield();
        }
        told t;
        std::forward<F>(f)(t);
        end_turn(t);
    }
    /// As above, but returns false if the lock is still held after `attempts` attempts.
    template <class F>
    [[nodiscard]] bool try_in_turn(F&& f, int attempts = 50) noexcept {
        for (int i = 0; i < attempts; ++i) {
            if (turn_.try_enter()) {
                told t;
                std::forward<F>(f)(t);
                end_turn(t);
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] wait_list<Waiter>& queue_of(Waiter&) noexcept { return queue_; }

    basic_turn<node, Atomics> turn_;
    wait_list<Waiter> queue_; // protected by the combining lock

private:
    friend Rules;

    constexpr basic_wait_room() noexcept = default;
    constexpr explicit basic_wait_room(bool is_open) noexcept : turn_(is_open) {}

    Rules& rules() noexcept { return static_cast<Rules&>(*this); }

    void depart(Waiter& w, told& t) noexcept {
        if (w.queued && rules().may_leave(w)) {
            rules().queue_of(w).remove(w);
            w.cancelled = true;
            rules().left(t);
        }
        t.answered(w);
    }

    void end_turn(told& t) noexcept {
        typename basic_turn<node, Atomics>::news left;
        while (!turn_.leave(left)) {
            while (left.oldest != nullptr) {
                auto& n = static_cast<typename Waiter::notice&>(*left.oldest);
                left.oldest = static_cast<node*>(n.next);
                Waiter& w = *n.waiter;
                if (&n == &w.arrival) {
                    rules().arrive(w, t);
                } else {
                    depart(w, t);
                }
            }
            if (left.signalled) {
                rules().look(t);
            }
        }
        t.tell(); // the room may be destroyed from here on
    }
};

} // namespace coil::detail
