#include "futex.hpp"

#include <coil/context/join_handle.hpp>

#include <atomic>

namespace coil::detail {

void join_state_base::mark_done() noexcept {
    if (waiter* w = handshake_.mark_done()) {
        w->notify(*w);
    }
}

bool join_state_base::register_waiter(waiter& w) noexcept { return handshake_.register_waiter(w); }

bool join_state_base::withdraw_waiter(waiter& w) noexcept { return handshake_.withdraw_waiter(w); }

namespace {

/// A thread that sleeps in get(). The futex is woken by its address only: its memory is not
/// accessed after `woken` is set, so get() may return immediately.
struct blocking_waiter : join_state_base::waiter {
    blocking_waiter() noexcept
        : waiter{[](waiter& base) noexcept {
              std::atomic<int>& word = static_cast<blocking_waiter&>(base).woken;
              const void* const address = &word;
              word.store(1, std::memory_order_release);
              futex_wake(address, 1);
          }} {}

    std::atomic<int> woken{0};
};
static_assert(sizeof(std::atomic<int>) == sizeof(int));

} // namespace

void join_state_base::wait_blocking() noexcept {
    blocking_waiter w;
    if (!register_waiter(w)) {
        return;
    }
    while (w.woken.load(std::memory_order_acquire) == 0) {
        futex_wait(&w.woken, 0);
    }
}

} // namespace coil::detail
