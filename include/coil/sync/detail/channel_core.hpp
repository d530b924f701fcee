#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/minmax.hpp>
#include <coil/sync/detail/bias.hpp>
#include <coil/sync/detail/channel_element.hpp>
#include <coil/sync/detail/ring.hpp>
#include <coil/sync/detail/wait_queue.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace coil::detail {

/// The state of a channel. Elements are first in `elements_`, which the combining lock protects,
/// then in `ring_`, which any thread uses without the lock as long as `marks_` says that there are
/// no waiters and no elements given back.
///
/// `marks_` says which queues have waiters, or that there is no ring. It also counts the coroutines
/// that have begun to wait and are not queued yet, because no thread may overtake them through the
/// ring. A thread that has changed the ring checks the marks afterwards and signals. A waiter sets
/// its mark first and then checks the ring again (serve_waiters()). So no waiter misses an element.
///
/// The channel is closed while the `open` bit of the lock is set. The bit is set together with the
/// signal, so that a send() after close() on the same thread fails. The ring is closed with the
/// lock held.
///
/// A channel with a ring is biased to its first user (basic_bias): the ring is then private, and
/// the owner's fast path is open while there are no marks and the channel is not closed. Everything
/// that another thread could do at the same time is done in a section. Without a ring, the channel
/// is shared from the beginning.
///
/// Waiter: has a static `this_user()` besides the requirements of basic_wait_queue.
/// Entry: a Waiter with `sends`, `closed`, `value` (optional<T>) and `element` (of `element_type`):
/// a sender on an unbounded channel has an `element` instead of a value; a receiver has an empty
/// one for give_back().
template <class T, class Entry, class Waiter, class Atomics = std_atomics>
class basic_channel
    : public basic_wait_queue<basic_channel<T, Entry, Waiter, Atomics>, Waiter, Atomics> {
public:
    using wait_queue = basic_wait_queue<basic_channel<T, Entry, Waiter, Atomics>, Waiter, Atomics>;
    using typename wait_queue::woken;
    using element = typename Entry::element_type;

    basic_channel(std::size_t capacity, bool unbounded)
        : bias_(capacity > 0), ring_(capacity), marks_(capacity == 0 ? no_ring : 0),
          unbounded_(unbounded) {}
    basic_channel(const basic_channel&) = delete;
    basic_channel& operator=(const basic_channel&) = delete;
    ~basic_channel() {
        this->check_unused(receivers_);
        this->check_unused(senders_);
        while (elements_ != nullptr) {
            delete coil::detail::exchange(elements_, elements_->next);
        }
    }

    /// Returns done after moving from `value`, closed, or would_block if attempt_locked() decides.
    [[nodiscard, gnu::always_inline]] ring_result try_push(T& value) noexcept {
        return try_push_from([&]() -> T& { return value; });
    }
    [[nodiscard, gnu::always_inline]] bool try_pop(std::optional<T>& value) noexcept {
        if (bias_.try_enter_fast(Waiter::this_user())) [[likely]] {
            const bool done = ring_.pop_private(value);
            bias_.leave();
            return done;
        }
        if (!bias_.is_shared() || is_marked() || !ring_.pop(value)) {
            return false;
        }
        if (marks_.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
            serve_others();
        }
        return true;
    }
    /// The first step of an await that sends. (For one that receives, it is try_pop().) Returns
    /// true if the value was sent. If it returns false, the caller calls attempt() next.
    [[nodiscard, gnu::always_inline]] bool push_now(Entry& e) noexcept {
        return try_push_from([&]() -> T& { return *e.value; }) == ring_result::done;
    }
    /// Moves the first values into the ring, in one pass over it. Returns their number, which is 0
    /// if attempt() decides.
    [[nodiscard]] std::size_t push_many(std::span<T> values) noexcept {
        return is_closed() ? 0 : in_one_pass([&] { return ring_.push_many(pass_of(values)); });
    }
    /// Assigns elements of the ring to the first objects of `into`, in one pass over it. Returns
    /// their number, which is 0 if attempt() decides.
    [[nodiscard]] std::size_t pop_many(std::span<T> into) noexcept {
        return in_one_pass([&] { return ring_.pop_many(pass_of(into)); });
    }
    /// The second step: attempt_locked(), with at most `attempts` attempts to acquire the lock.
    /// Returns true if the await is complete. If it returns false, possibly only because the lock
    /// is contended, the caller calls wait() next.
    [[nodiscard]] bool attempt(Entry& e, int attempts = 50) noexcept {
        if (bias_.is_fast(Waiter::this_user())) {
            return false; // the first step has found the ring full or empty
        }
        bool done = false;
        const section here(*this);
        return this->try_with_lock([&](woken& t) { done = serve_now(e, t); }, attempts) && done;
    }
    /// Called if try_push() or try_pop() could not complete the operation, and for a sender on an
    /// unbounded channel: with the lock held, completes the operation if it need not wait.
    void attempt_locked(Entry& e, bool& done) noexcept {
        const section here(*this);
        this->with_lock([&](woken& t) { done = serve_now(e, t); });
    }

    /// Called on the waiter's thread.
    void wait(Waiter& w) noexcept {
        const section here(*this);
        if (ring_.capacity() > 0) {
            add_marks(enqueueing);
        }
        wait_queue::wait(w);
    }

    /// Called on the waiter's thread.
    void leave(Waiter& w) noexcept {
        const section here(*this);
        wait_queue::leave(w);
    }

    /// Ends the bias. Called by models, and before any other use.
    void share() noexcept {
        static_cast<void>(bias_.enter(0, [this] { ring_.share(); }));
    }

    void close() noexcept {
        const section here(*this);
        this->signal(this->combining_lock_.open);
    }
    [[nodiscard]] bool is_closed() const noexcept { return this->combining_lock_.is_open(); }
    [[nodiscard]] bool is_unbounded() const noexcept { return unbounded_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return ring_.capacity(); }
    /// The number of elements in the ring; approximate while other threads use it.
    [[nodiscard]] std::size_t buffered() const noexcept { return ring_.size(); }

    /// Takes back an element that its receiver will not use; it is the next one to be received.
    void give_back(std::unique_ptr<element> returned) noexcept {
        const section here(*this);
        this->with_lock([&](woken& t) {
            element* const e = returned.release();
            e->next = elements_;
            elements_ = e;
            if (e->next == nullptr) {
                last_ = e;
            }
            serve_waiters(t);
        });
    }

private:
    friend wait_queue;

    static constexpr unsigned receivers_wait = 1;
    static constexpr unsigned senders_wait = 2;
    static constexpr unsigned has_elements = 4;
    static constexpr unsigned no_ring = 8;     // always, if there is no ring
    static constexpr unsigned enqueueing = 16; // a counter in the bits from here up

    /// Bounds the time for which a pass of a batch keeps other threads waiting.
    [[nodiscard]] static std::span<T> pass_of(std::span<T> all) noexcept {
        constexpr std::size_t most = 64;
        return all.first(min(all.size(), most));
    }

    template <class Pass>
    [[nodiscard, gnu::always_inline]] std::size_t in_one_pass(Pass pass) noexcept {
        const bool is_owner = bias_.try_enter_fast(Waiter::this_user());
        if (!is_owner && (!bias_.is_shared() || is_marked())) {
            return 0;
        }
        const std::size_t count = pass();
        if (is_owner) {
            bias_.leave();
        } else if (count > 0 && marks_.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
            serve_others();
        }
        return count;
    }

    /// Called in a section.
    void add_marks(unsigned change) noexcept {
        if (ring_.is_private()) {
            marks_.store(marks_.load(std::memory_order_relaxed) + change,
                         std::memory_order_relaxed);
        } else {
            marks_.fetch_add(change, std::memory_order_seq_cst);
        }
    }

    /// While it exists, no other thread ends the bias. If the channel is shared, it does nothing: a
    /// waiter that this thread has notified may then destroy the channel.
    class section {
    public:
        explicit section(basic_channel& of) noexcept
            : of_(of), is_owner_(of.bias_.enter(Waiter::this_user(), [&] { of.ring_.share(); })) {}
        section(const section&) = delete;
        section& operator=(const section&) = delete;
        ~section() {
            if (is_owner_) {
                of_.bias_.allow_fast(Waiter::this_user(), !of_.is_marked() && !of_.is_closed());
                of_.bias_.leave();
            }
        }

    private:
        basic_channel& of_;
        const bool is_owner_;
    };

    [[nodiscard]] bool is_marked() const noexcept {
        return marks_.load(std::memory_order_relaxed) != 0;
    }
    /// `value` is called if there is a ring: a sender on an unbounded channel has no value.
    template <class Value>
    [[nodiscard, gnu::always_inline]] ring_result try_push_from(Value value) noexcept {
        if (bias_.try_enter_fast(Waiter::this_user())) [[likely]] {
            const bool done = ring_.push_private(value());
            bias_.leave();
            return done ? ring_result::done : ring_result::would_block;
        }
        if (!bias_.is_shared()) {
            return ring_result::would_block;
        }
        if (is_closed()) {
            return ring_result::closed;
        }
        return is_marked() ? ring_result::would_block : push_into_ring(value());
    }
    [[nodiscard, gnu::always_inline]] ring_result push_into_ring(T& value) noexcept {
        const ring_result result = ring_.push(value);
        if (result == ring_result::done && marks_.load(std::memory_order_seq_cst) != 0)
            [[unlikely]] {
            serve_others();
        }
        return result;
    }
    /// The ring has changed, and there are waiters.
    [[gnu::noinline]] void serve_others() noexcept { this->signal(); }

    static Entry& entry(Waiter& w) noexcept { return static_cast<Entry&>(w); }

    [[nodiscard]] wait_list<Waiter>& queue_of(Waiter& w) noexcept {
        return entry(w).sends ? senders_ : receivers_;
    }

    void enqueue(Waiter& w, woken& t) noexcept {
        if (this->combining_lock_.is_open() && entry(w).sends) {
            entry(w).closed = true;
            t.complete(w);
        } else {
            queue_of(w).push(w);
        }
        serve_waiters(t, enqueueing);
    }
    /// Serves an entry that does not wait, without overtaking waiters.
    [[nodiscard]] bool serve_now(Entry& e, woken& t) noexcept {
        if (e.sends && this->combining_lock_.is_open()) {
            e.closed = true;
            return true;
        }
        if (!queue_of(e).empty()) {
            return false;
        }
        const bool served = e.sends ? put(e, t) : get(e, t);
        if (served) {
            serve_waiters(t);
        } else if (!e.sends && is_over()) {
            e.closed = true;
            return true;
        }
        return served;
    }
    [[nodiscard]] bool may_cancel(Waiter&) noexcept { return true; }
    void on_cancelled(woken& t) noexcept { serve_waiters(t); }
    void on_signal(woken& t) noexcept { serve_waiters(t); }

    /// Puts a sender's value into the channel, or hands it to a receiver.
    [[nodiscard]] bool put(Entry& e, woken& t) noexcept {
        if (unbounded_) {
            element* const added = e.element.release();
            (elements_ == nullptr ? elements_ : last_->next) = added;
            last_ = added;
            return true;
        }
        if (ring_.capacity() > 0) {
            return ring_.push_unless_full(*e.value) == ring_result::done;
        }
        if (receivers_.empty()) {
            return false;
        }
        Waiter& to = receivers_.pop();
        entry(to).value.emplace(std::move(*e.value));
        t.complete(to);
        return true;
    }
    [[nodiscard]] bool get(Entry& e, woken& t) noexcept {
        if (elements_ != nullptr) {
            element* const taken = coil::detail::exchange(elements_, elements_->next);
            e.value.emplace(std::move(*taken->value));
            delete taken;
            return true;
        }
        if (ring_.capacity() > 0) {
            return ring_.pop_unless_empty(e.value);
        }
        // Direct hand-over. A sender on an unbounded channel has no `value`; it gets here only
        // after the lock was contended, and put() serves it.
        if (unbounded_ || senders_.empty()) {
            return false;
        }
        Waiter& from = senders_.pop();
        e.value.emplace(std::move(*entry(from).value));
        t.complete(from);
        return true;
    }
    /// Whether the channel is closed and no element will follow.
    [[nodiscard]] bool is_over() noexcept {
        if (!this->combining_lock_.is_open()) {
            return false;
        }
        ring_.close();
        return elements_ == nullptr && ring_.is_drained();
    }

    /// Serves waiters from the available elements and free space. `arrived` is subtracted from
    /// `marks_`: it is `enqueueing` if a coroutine that was counted there is now queued.
    void serve_waiters(woken& t, unsigned arrived = 0) noexcept {
        for (;;) {
            match(t);
            if (this->combining_lock_.is_open()) {
                end_waits(t);
            }
            if (ring_.capacity() == 0) {
                return; // without a ring, elements and waiters change only with the lock held
            }
            const unsigned before = marks_.load(std::memory_order_relaxed) &
                                    (receivers_wait | senders_wait | has_elements);
            const unsigned now = (receivers_.empty() ? 0 : receivers_wait) |
                                 (senders_.empty() ? 0 : senders_wait) |
                                 (elements_ == nullptr ? 0 : has_elements);
            const unsigned change = now - before - coil::detail::exchange(arrived, 0);
            if (change != 0) {
                add_marks(change);
            }
            if ((now & ~before) == 0) {
                return;
            }
        }
    }
    void match(woken& t) noexcept {
        for (bool moved = true; moved;) {
            moved = false;
            while (!receivers_.empty() && get(entry(*receivers_.first()), t)) {
                t.complete(receivers_.pop());
                moved = true;
            }
            while (!senders_.empty() && put(entry(*senders_.first()), t)) {
                t.complete(senders_.pop());
                moved = true;
            }
        }
    }
    void end_waits(woken& t) noexcept {
        while (!senders_.empty()) {
            Waiter& w = senders_.pop();
            entry(w).closed = true;
            t.complete(w);
        }
        while (!receivers_.empty() && is_over()) {
            Waiter& w = receivers_.pop();
            entry(w).closed = true;
            t.complete(w);
        }
    }

    // Not beside the combining lock: every send and receive of a shared channel reads it.
    alignas(64) basic_bias<Atomics> bias_;
    basic_ring<T, Atomics> ring_;
    alignas(64) typename Atomics::template atomic<unsigned> marks_;
    const bool unbounded_;
    // Protected by the combining lock.
    wait_list<Waiter> receivers_;
    wait_list<Waiter> senders_;
    element* elements_ = nullptr;
    element* last_ = nullptr;
};

} // namespace coil::detail
