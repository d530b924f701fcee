#pragma once

#include <coil/core/atomics.hpp>
#include <coil/sync/detail/turn.hpp>

#include <type_traits>
#include <utility>

namespace coil::detail {

/// Those who wait, oldest first. A Waiter has `later` and `earlier`, and `queued`, which says
/// whether it is in a list.
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
    /// The oldest; there must be one.
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

/// Those who are to be told something once the turn is over, in order.
template <class Waiter>
class told_list {
public:
    using notice = typename Waiter::notice;
    using node = typename Waiter::turn_node;

    /// That its wait is over.
    void over(Waiter& w) noexcept { push(w.arrival); }
    /// That its wish to leave was dealt with.
    void answered(Waiter& w) noexcept { push(w.departure); }

    void tell() noexcept {
        while (first_ != nullptr) {
            notice& n = *first_;
            first_ = static_cast<notice*>(static_cast<node*>(n.next)); // it may go
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

/// Where coroutines of any context wait for what a primitive gives.
///
/// All that happens to those who wait happens in a turn (basic_turn), as the primitive's `Rules`
/// say; who waits learns of it after the turn. A waiter that wants to leave says so like one that
/// arrives, and is in nobody's hands once it has its answer: so a waiter is told `over` once, and
/// `answered` once for each wish to leave, and may be destroyed when neither is outstanding.
///
/// Waiter: `turn_node` {next}; `notice` {waiter}, which is one; `arrival` and `departure` of that
/// type; what a wait_list needs; `cancelled`; `tell(notice&)`: any thread, outside of any turn.
///
/// Rules, all called with the turn:
/// - `arrive(w, told)`: queue it, or tell it that its wait is over.
/// - `may_leave(w)`: a queued waiter wants to leave. False: what it waits for is on its way.
/// - `left(told)`: a waiter has left the queue.
/// - `look(told)`: there was a signal.
/// - `queue_of(w)`, where there is more than one queue.
template <class Rules, class Waiter, class Atomics = std_atomics>
class basic_wait_room {
public:
    using told = told_list<Waiter>;

    /// The waiter's thread.
    void wait(Waiter& w) noexcept {
        if (turn_.enter(w.arrival)) {
            told t;
            rules().arrive(w, t);
            end_turn(t);
        }
    }
    /// The waiter's thread, which waits for the answer.
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

    /// Any thread: look() will be called, or has been.
    void signal(std::uintptr_t bits = 0) noexcept {
        if (turn_.signal(bits)) {
            told t;
            rules().look(t);
            end_turn(t);
        }
    }
    /// Any thread: look() will be called for this signal and no other, or has been. It waits while
    /// there is another that has not been seen.
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
    /// Any thread: what a call does that must have its result at once. It waits for the turn.
    template <class F>
    void in_turn(F&& f) noexcept {
        while (!turn_.try_enter()) {
            Atomics::yield();
        }
        told t;
        std::forward<F>(f)(t);
        end_turn(t);
    }
    /// The same, unless somebody else has the turn for longer than a moment: false.
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
    wait_list<Waiter> queue_; // the turn's

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
        t.tell(); // from here on the room may be gone
    }
};

} // namespace coil::detail
