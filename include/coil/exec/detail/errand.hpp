#pragma once

#include <coil/core/atomics.hpp>

#include <atomic>

namespace coil::detail {

/// Something that another thread does for a coroutine: one word of the awaiter says who of the two
/// acts next. The sender is the thread on which the coroutine awaits.
///
/// sending → out → back, with abandoned between the last two when the awaiter is being destroyed;
/// or sending → back, when it was done before the sender has suspended.
template <class Atomics = std_atomics>
class basic_errand {
public:
    enum state : unsigned { sending, out, abandoned, back };

    /// Sender, after it was sent. True: the coroutine waits, and will be told. False: it is back
    /// already, and nobody tells.
    [[nodiscard]] bool wait() noexcept {
        unsigned expected = sending;
        return word_.compare_exchange_strong(expected, out, std::memory_order_acq_rel);
    }
    /// Sender, whose awaiter is being destroyed. True: it sleeps until is_back(). False: it is
    /// back, and whoever did it is about to tell.
    [[nodiscard]] bool abandon() noexcept {
        unsigned expected = out;
        return word_.compare_exchange_strong(expected, abandoned, std::memory_order_acq_rel);
    }
    [[nodiscard]] bool is_back() const noexcept {
        return word_.load(std::memory_order_acquire) == back;
    }

    /// Whoever does it, before: whether somebody still wants it.
    [[nodiscard]] bool is_wanted() const noexcept {
        return word_.load(std::memory_order_relaxed) != abandoned;
    }
    /// Whoever does it, when the result is there. `sending`: the sender will see it. `out`: tell
    /// the coroutine. `abandoned`: wake the sender, by the address of the word alone. In the first
    /// and the last case the awaiter may be gone.
    [[nodiscard]] state finish() noexcept {
        return static_cast<state>(word_.exchange(back, std::memory_order_acq_rel));
    }

    /// Before it is sent again.
    void renew() noexcept { word_.store(sending, std::memory_order_relaxed); }

    [[nodiscard]] const void* address() const noexcept { return &word_; }

private:
    typename Atomics::template atomic<unsigned> word_{sending};
};

/// Who of two gets something that lies in a queue out of which nothing can be taken: the executor
/// that comes to it, or who has put it there and gives it up. The other one leaves it alone.
template <class Atomics = std_atomics>
class basic_claim {
public:
    /// Once by each of the two; true for the first.
    [[nodiscard]] bool take() noexcept {
        unsigned expected = 0;
        return word_.compare_exchange_strong(expected, 1, std::memory_order_acq_rel);
    }

private:
    typename Atomics::template atomic<unsigned> word_{0};
};

using errand = basic_errand<>;
using claim = basic_claim<>;

} // namespace coil::detail
