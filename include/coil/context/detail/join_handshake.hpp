#pragma once

#include <coil/core/detail/atomics.hpp>

#include <atomic>

namespace coil::detail {

/// The handshake between a task's thread and its joiner, possibly on another thread: which side
/// notifies, and which side frees their shared state.
///
/// `state_` holds null (running), the Waiter to notify, or the address of `done_mark`.
template <class Waiter, class Atomics = std_atomics>
class basic_join_handshake {
public:
    /// May be called from any thread. If true, the result may be read.
    [[nodiscard]] bool done() const noexcept {
        return state_.load(std::memory_order_acquire) == &done_mark;
    }
    /// Called by the joiner. Returns false if the task is done or has a waiter already; then there
    /// will be no notification.
    [[nodiscard]] bool register_waiter(Waiter& w) noexcept {
        void* expected = nullptr;
        return state_.compare_exchange_strong(expected, &w, std::memory_order_acq_rel);
    }
    /// Called by the joiner. Returns false if the notification is already on its way.
    [[nodiscard]] bool withdraw_waiter(Waiter& w) noexcept {
        void* expected = &w;
        return state_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
    }
    /// Called by the task once, when the result is available. Returns the waiter to notify, or
    /// null.
    [[nodiscard]] Waiter* mark_done() noexcept {
        return static_cast<Waiter*>(state_.exchange(&done_mark, std::memory_order_acq_rel));
    }
    /// Called once by each of the two owners. Returns true for the second, which frees the state.
    [[nodiscard]] bool release_one() noexcept {
        return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

private:
    static inline char done_mark = 0;

    typename Atomics::template atomic<void*> state_{nullptr};
    typename Atomics::template atomic<unsigned> owners_{2};
};

} // namespace coil::detail
