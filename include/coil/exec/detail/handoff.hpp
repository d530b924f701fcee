#pragma once

#include <coil/base/assert.hpp>
#include <coil/core/detail/atomics.hpp>

#include <atomic>

namespace coil::detail {

/// The state of a suspended await that another thread may complete, and the handshake between the
/// two sides: the completing side may finish while the awaiting side suspends or is being
/// destroyed.
///
///     fresh → submitted → away → arriving → queued → ended
///
/// - submitted: the work was submitted, and await_suspend() has not returned. If it is complete
///   before that (→ arriving), the coroutine continues without suspending (→ ended).
/// - away: the coroutine is suspended.
/// - abandoned: the awaiter is being destroyed and blocks until the work is complete (→ arriving).
/// - arriving: the work is complete, and the coroutine is on its way to where it resumes. An await
///   that only moves the coroutine begins here.
/// - queued: in the ready queue of a context.
/// - ended: the coroutine runs, or the await has ended without it.
///
/// The completing side calls complete() and is_wanted(), the awaiting side everything else. Plain
/// stores are used only in states in which the other side does not write.
template <class Atomics = std_atomics>
class basic_handoff {
public:
    enum state : unsigned { fresh, submitted, away, abandoned, arriving, queued, ended };

    /// Called before the work is submitted.
    void submit() noexcept { restart(submitted); }
    /// Called before the coroutine moves.
    void move() noexcept { restart(arriving); }

    /// Called after submission. True: the coroutine suspends, and the completing side resumes it.
    /// False: the work is complete, and the completing side does nothing more.
    [[nodiscard]] bool suspend() noexcept {
        unsigned expected = submitted;
        return word_.compare_exchange_strong(expected, away, std::memory_order_acq_rel);
    }
    /// Called by a suspended awaiter that is being destroyed. True: it must block until
    /// is_complete(). False: the coroutine is on its way.
    [[nodiscard]] bool abandon() noexcept {
        unsigned expected = away;
        return word_.compare_exchange_strong(expected, abandoned, std::memory_order_acq_rel);
    }
    [[nodiscard]] bool is_complete() const noexcept {
        return word_.load(std::memory_order_acquire) == arriving;
    }
    void enqueue() noexcept { word_.store(queued, std::memory_order_relaxed); }
    void end() noexcept { word_.store(ended, std::memory_order_relaxed); }

    /// Whether the await has begun and its coroutine has not come back.
    [[nodiscard]] bool is_elsewhere() const noexcept {
        const unsigned now = word_.load(std::memory_order_relaxed);
        return now > fresh && now < queued;
    }
    /// Like is_elsewhere(), but false once the work is known to be complete.
    [[nodiscard]] bool is_pending() const noexcept {
        const unsigned now = word_.load(std::memory_order_relaxed);
        return now > fresh && now < arriving;
    }
    [[nodiscard]] bool is(state s) const noexcept {
        return word_.load(std::memory_order_relaxed) == s;
    }

    /// Whether the result is still wanted.
    [[nodiscard]] bool is_wanted() const noexcept { return !is(abandoned); }
    /// Called once, when the result is available. Returns `submitted`: the awaiting side will see
    /// it; `away`: resume the coroutine; `abandoned`: wake the awaiting side, using only the
    /// address of the word. After `submitted` and `abandoned` the awaiter may be destroyed.
    [[nodiscard]] state complete() noexcept {
        const auto before = static_cast<state>(word_.exchange(arriving, std::memory_order_acq_rel));
        COIL_ASSERT(before == submitted || before == away || before == abandoned);
        return before;
    }

    [[nodiscard]] const void* address() const noexcept { return &word_; }

private:
    void restart(state s) noexcept {
        COIL_ASSERT(is(fresh) || is(ended));
        word_.store(s, std::memory_order_relaxed);
    }

    typename Atomics::template atomic<unsigned> word_{fresh};
};

using handoff = basic_handoff<>;

} // namespace coil::detail
