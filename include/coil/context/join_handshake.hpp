#pragma once

#include <coil/core/atomics.hpp>

#include <atomic>

namespace coil::detail {

/// How a task's thread and whoever joins it, which may be another thread, agree on who tells whom,
/// and on who frees what they share.
///
/// `state_` holds null (running), the Waiter that wants to know, or the address of `done_mark`.
template <class Waiter, class Atomics = std_atomics>
class basic_join_handshake {
public:
    /// Any thread. When true, the result may be read.
    [[nodiscard]] bool done() const noexcept {
        return state_.load(std::memory_order_acquire) == &done_mark;
    }
    /// The joiner. False when the task is done already, or when somebody waits: nobody will notify.
    [[nodiscard]] bool register_waiter(Waiter& w) noexcept {
        void* expected = nullptr;
        return state_.compare_exchange_strong(expected, &w, std::memory_order_acq_rel);
    }
    /// The joiner. False when the notification is under way and will come.
    [[nodiscard]] bool withdraw_waiter(Waiter& w) noexcept {
        void* expected = &w;
        return state_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
    }
    /// The task's side, once, when the result is there: the waiter that is to be notified, or null.
    [[nodiscard]] Waiter* mark_done() noexcept {
        return static_cast<Waiter*>(state_.exchange(&done_mark, std::memory_order_acq_rel));
    }
    /// Each of the two owners, once. True for the last: it frees.
    [[nodiscard]] bool release_one() noexcept {
        return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

private:
    static inline char done_mark = 0;

    typename Atomics::template atomic<void*> state_{nullptr};
    typename Atomics::template atomic<unsigned> owners_{2};
};

} // namespace coil::detail
