#pragma once

#include <coil/sync/detail/wait_queue.hpp>

namespace coil::detail {

/// Manual-reset events and latches: wait() completes at once while the gate is open.
///
/// A caller that passes without waiting has seen that open() is finished, and may destroy the gate.
template <class Waiter, class Atomics = std_atomics>
class basic_gate : public basic_wait_room<basic_gate<Waiter, Atomics>, Waiter, Atomics> {
public:
    using room = basic_wait_room<basic_gate<Waiter, Atomics>, Waiter, Atomics>;
    using typename room::told;

    constexpr explicit basic_gate(bool is_open) noexcept : room(is_open) {}

    /// On false the caller calls wait() next.
    [[nodiscard]] bool passes() const noexcept { return this->turn_.is_open_and_free(); }
    [[nodiscard]] bool is_open() const noexcept { return this->turn_.is_open(); }

    /// Resumes all waiters, even if the gate is closed at once.
    void open() noexcept { this->signal(this->turn_.open); }
    void close() noexcept { this->turn_.close(); }

private:
    friend room;

    void arrive(Waiter& w, told& t) noexcept {
        if (is_open()) {
            t.over(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_leave(Waiter&) noexcept { return true; }
    void left(told&) noexcept {}
    void look(told& t) noexcept {
        while (!this->queue_.empty()) {
            t.over(this->queue_.pop());
        }
    }
};

} // namespace coil::detail
