#pragma once

#include <coil/core/atomics.hpp>
#include <coil/core/backoff.hpp>

#include <atomic>

namespace coil::detail {

/// A hand-shake for work that another thread does for a coroutine. One word of the awaiter says
/// which side acts next. The sender is the thread on which the coroutine awaits.
///
/// sending → out → back, with abandoned between the last two if the awaiter is being destroyed; or
/// sending → back if the work was complete before the sender suspended.
template <class Atomics = std_atomics>
class basic_errand {
public:
    enum state : unsigned { sending, out, abandoned, back };

    /// Called by the sender after submission. True: the coroutine waits and will be notified.
    /// False: the work is complete, and no notification follows.
    [[nodiscard]] bool wait() noexcept {
        unsigned expected = sending;
        return word_.compare_exchange_strong(expected, out, std::memory_order_acq_rel);
    }
    /// Called by a sender whose awaiter is being destroyed. True: it must sleep until is_back().
    /// False: the work is complete, and a notification is about to follow.
    [[nodiscard]] bool abandon() noexcept {
        unsigned expected = out;
        return word_.compare_exchange_strong(expected, abandoned, std::memory_order_acq_rel);
    }
    [[nodiscard]] bool is_back() const noexcept {
        return word_.load(std::memory_order_acquire) == back;
    }

    /// Called by the executing thread before it starts. Returns whether the result is still wanted.
    [[nodiscard]] bool is_wanted() const noexcept {
        return word_.load(std::memory_order_relaxed) != abandoned;
    }
    /// Called by the executing thread when the result is there. Returns `sending`: the sender will
    /// see it; `out`: notify the coroutine; `abandoned`: wake the sender, using only the address of
    /// the word. After `sending` and `abandoned` the awaiter may be destroyed.
    [[nodiscard]] state finish() noexcept {
        return static_cast<state>(word_.exchange(back, std::memory_order_acq_rel));
    }

    /// Called before the next submission.
    void renew() noexcept { word_.store(sending, std::memory_order_relaxed); }

    [[nodiscard]] const void* address() const noexcept { return &word_; }

private:
    typename Atomics::template atomic<unsigned> word_{sending};
};

/// Decides the ownership of an entry in a queue from which nothing can be removed, between the
/// executor that reaches it and the submitter that gives it up. The second one to claim it owns it.
template <class Atomics = std_atomics>
class basic_claim {
public:
    /// Called once by each side. Returns true for the first.
    [[nodiscard]] bool take() noexcept {
        for (backoff wait;; wait.once_more()) {
            unsigned expected = open;
            if (word_.compare_exchange_strong(expected, taken, std::memory_order_acq_rel)) {
                return true;
            }
            if (expected == taken) {
                return false;
            }
        }
    }

    /// Called by the executor before take(). True: until look_away() the submitter cannot give the
    /// entry up, so it exists. False: it has.
    [[nodiscard]] bool look() noexcept {
        unsigned expected = open;
        return word_.compare_exchange_strong(expected, looking, std::memory_order_acq_rel);
    }
    void look_away() noexcept { word_.store(open, std::memory_order_release); }

private:
    enum state : unsigned { open, looking, taken };
    typename Atomics::template atomic<unsigned> word_{open};
};

using handoff = basic_errand<>;
using claim = basic_claim<>;

} // namespace coil::detail
