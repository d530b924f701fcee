#pragma once

#include <coil/sync/detail/ring.hpp>
#include <coil/sync/detail/wait_room.hpp>

#include <atomic>
#include <cstddef>
#include <new>
#include <optional>
#include <utility>

namespace coil::detail {

/// An element on its own: of an unbounded channel, or one that a receiver gave back.
template <class T>
struct channel_element {
    explicit channel_element(T&& v) noexcept : value(std::move(v)) {}
    T value;
    channel_element* next = nullptr;
};

/// A channel. What is in it lies in `ring_`, which any thread uses without a turn, unless somebody
/// waits or something was given back (`marks_`); and before that in `elements_`, the turn's.
///
/// Who waits is in one of the queues, and `marks_` says so; it also counts those who have begun to
/// wait and are not in a queue yet, as nobody may pass them through the ring. Whoever has changed
/// the ring looks at the marks afterwards, and signals; whoever queues up marks first and then
/// looks at the ring again (settle()): nobody is left waiting for what is there.
///
/// Closing is the turn's `open` bit: set with the signal, so that who calls close() and then sends
/// is told; the ring is closed in the turn.
///
/// Entry: a Waiter with `sends`, `closed`, `value` (optional<T>) and `element` (what a sender of an
/// unbounded channel has instead of a value).
template <class T, class Entry, class Waiter, class Atomics = std_atomics>
class basic_channel
    : public basic_wait_room<basic_channel<T, Entry, Waiter, Atomics>, Waiter, Atomics> {
public:
    using room = basic_wait_room<basic_channel<T, Entry, Waiter, Atomics>, Waiter, Atomics>;
    using typename room::told;
    using element = channel_element<T>;

    basic_channel(std::size_t capacity, bool unbounded) : ring_(capacity), unbounded_(unbounded) {}
    basic_channel(const basic_channel&) = delete;
    basic_channel& operator=(const basic_channel&) = delete;
    ~basic_channel() {
        while (elements_ != nullptr) {
            delete std::exchange(elements_, elements_->next);
        }
    }

    /// done: moved from `value`. not_now: it has to wait.
    [[nodiscard]] ring_answer try_push(T& value) noexcept {
        if (is_closed()) {
            return ring_answer::closed;
        }
        if (ring_.capacity() == 0 || marks_.load(std::memory_order_relaxed) != 0) {
            return ring_answer::not_now;
        }
        const ring_answer answer = ring_.push(value);
        if (answer == ring_answer::done && marks_.load(std::memory_order_seq_cst) != 0) {
            this->signal();
        }
        return answer;
    }
    [[nodiscard]] bool try_pop(std::optional<T>& value) noexcept {
        if (ring_.capacity() == 0 || marks_.load(std::memory_order_relaxed) != 0 ||
            !ring_.pop(value)) {
            return false;
        }
        if (marks_.load(std::memory_order_seq_cst) != 0) {
            this->signal();
        }
        return true;
    }
    /// What an await does first, with so many attempts to have the turn. True: it is over. False:
    /// it waits, by wait(), now; perhaps only because somebody else has the turn.
    [[nodiscard]] bool send_now(Entry& e, int attempts = 50) noexcept {
        if (!unbounded_) {
            switch (try_push(*e.value)) {
            case ring_answer::done:
                return true;
            case ring_answer::closed:
                e.closed = true;
                return true;
            case ring_answer::not_now:
                break;
            }
        }
        return attempt(e, attempts);
    }
    [[nodiscard]] bool receive_now(Entry& e, int attempts = 50) noexcept {
        return try_pop(e.value) || attempt(e, attempts);
    }
    /// Where try_push() and try_pop() say not now: does in a turn what can be done without waiting.
    void attempt_in_turn(Entry& e, bool& done) noexcept {
        this->in_turn([&](told& t) { done = serve_now(e, t); });
    }

    /// The waiter's thread.
    void wait(Waiter& w) noexcept {
        if (ring_.capacity() > 0) {
            marks_.fetch_add(coming, std::memory_order_seq_cst);
        }
        room::wait(w);
    }

    void close() noexcept { this->signal(this->turn_.open); }
    [[nodiscard]] bool is_closed() const noexcept { return this->turn_.is_open(); }
    [[nodiscard]] bool is_unbounded() const noexcept { return unbounded_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return ring_.capacity(); }

    /// Of a receiver that will not use it: it is the first to come out.
    void give_back(T&& value) noexcept {
        auto* const e = new (std::nothrow) element(std::move(value));
        if (e == nullptr) {
            return; // out of memory
        }
        this->in_turn([&](told& t) {
            e->next = elements_;
            elements_ = e;
            if (e->next == nullptr) {
                last_ = e;
            }
            settle(t);
        });
    }

private:
    friend room;

    static constexpr unsigned receivers_wait = 1;
    static constexpr unsigned senders_wait = 2;
    static constexpr unsigned elements_lie = 4;
    static constexpr unsigned coming = 8; // and its multiples

    /// attempt_in_turn(), unless somebody else keeps the turn. Whether it is done.
    [[nodiscard]] bool attempt(Entry& e, int attempts) noexcept {
        bool done = false;
        return this->try_in_turn([&](told& t) { done = serve_now(e, t); }, attempts) && done;
    }

    static Entry& entry(Waiter& w) noexcept { return static_cast<Entry&>(w); }

    [[nodiscard]] wait_list<Waiter>& queue_of(Waiter& w) noexcept {
        return entry(w).sends ? senders_ : receivers_;
    }

    void arrive(Waiter& w, told& t) noexcept {
        if (this->turn_.is_open() && entry(w).sends) {
            entry(w).closed = true;
            t.over(w);
        } else {
            queue_of(w).push(w);
        }
        settle(t, coming);
    }
    /// What does not want to wait; nobody passes those who do.
    [[nodiscard]] bool serve_now(Entry& e, told& t) noexcept {
        if (e.sends && this->turn_.is_open()) {
            e.closed = true;
            return true;
        }
        if (!queue_of(e).empty()) {
            return false;
        }
        const bool served = e.sends ? put(e, t) : get(e, t);
        if (served) {
            settle(t);
        } else if (!e.sends && is_over()) {
            e.closed = true;
            return true;
        }
        return served;
    }
    [[nodiscard]] bool may_leave(Waiter&) noexcept { return true; }
    void left(told& t) noexcept { settle(t); }
    void look(told& t) noexcept { settle(t); }

    /// A sender's value goes in, or to a receiver.
    [[nodiscard]] bool put(Entry& e, told& t) noexcept {
        if (unbounded_) {
            element* const added = e.element.release();
            (elements_ == nullptr ? elements_ : last_->next) = added;
            last_ = added;
            return true;
        }
        if (ring_.capacity() > 0) {
            return ring_.push(*e.value) == ring_answer::done;
        }
        if (receivers_.empty()) {
            return false;
        }
        Waiter& to = receivers_.pop();
        entry(to).value.emplace(std::move(*e.value));
        t.over(to);
        return true;
    }
    [[nodiscard]] bool get(Entry& e, told& t) noexcept {
        if (elements_ != nullptr) {
            element* const taken = std::exchange(elements_, elements_->next);
            e.value.emplace(std::move(taken->value));
            delete taken;
            return true;
        }
        if (ring_.capacity() > 0) {
            return ring_.pop(e.value);
        }
        // From hand to hand. A sender of an unbounded channel has no `value`: it is here only
        // because somebody else had the turn, and put() is what serves it.
        if (unbounded_ || senders_.empty()) {
            return false;
        }
        Waiter& from = senders_.pop();
        e.value.emplace(std::move(*entry(from).value));
        t.over(from);
        return true;
    }
    /// Closed, and nothing will come any more.
    [[nodiscard]] bool is_over() noexcept {
        if (!this->turn_.is_open()) {
            return false;
        }
        ring_.close();
        return elements_ == nullptr && ring_.is_drained();
    }

    /// Gives whoever waits what there is. `arrived`: of `marks_`, who is not coming any more.
    void settle(told& t, unsigned arrived = 0) noexcept {
        for (;;) {
            match(t);
            if (this->turn_.is_open()) {
                end_waits(t);
            }
            if (ring_.capacity() == 0) {
                return; // nobody goes without a turn
            }
            const unsigned before = marks_.load(std::memory_order_relaxed) & (coming - 1);
            const unsigned now = (receivers_.empty() ? 0 : receivers_wait) |
                                 (senders_.empty() ? 0 : senders_wait) |
                                 (elements_ == nullptr ? 0 : elements_lie);
            const unsigned change = now - before - std::exchange(arrived, 0);
            if (change != 0) {
                marks_.fetch_add(change, std::memory_order_seq_cst);
            }
            if ((now & ~before) == 0) {
                return;
            }
        }
    }
    void match(told& t) noexcept {
        for (bool moved = true; moved;) {
            moved = false;
            while (!receivers_.empty() && get(entry(*receivers_.first()), t)) {
                t.over(receivers_.pop());
                moved = true;
            }
            while (!senders_.empty() && put(entry(*senders_.first()), t)) {
                t.over(senders_.pop());
                moved = true;
            }
        }
    }
    void end_waits(told& t) noexcept {
        while (!senders_.empty()) {
            Waiter& w = senders_.pop();
            entry(w).closed = true;
            t.over(w);
        }
        while (!receivers_.empty() && is_over()) {
            Waiter& w = receivers_.pop();
            entry(w).closed = true;
            t.over(w);
        }
    }

    basic_ring<T, Atomics> ring_;
    alignas(64) typename Atomics::template atomic<unsigned> marks_{0};
    const bool unbounded_;
    // The turn's.
    wait_list<Waiter> receivers_;
    wait_list<Waiter> senders_;
    element* elements_ = nullptr;
    element* last_ = nullptr;
};

} // namespace coil::detail
