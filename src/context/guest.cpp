#include <coil/context/event_loop.hpp>
#include <coil/context/guest.hpp>
#include <coil/core/backoff.hpp>

namespace coil::detail {

event_loop* guest_observer::place::lock() noexcept {
    for (backoff wait;; wait.once_more()) {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed) & ~locked;
        if (word_.compare_exchange_weak(seen, seen | locked, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
            return reinterpret_cast<event_loop*>(seen);
        }
    }
}

void guest_observer::place::unlock(event_loop* loop) noexcept {
    word_.store(reinterpret_cast<std::uintptr_t>(loop), std::memory_order_release);
}

void guest_observer::moved_to(event_loop* loop) noexcept {
    place_.lock();
    const bool is_asked_for = is_condemned();
    place_.unlock(loop);
    if (loop != nullptr) {
        came_ = loop->waits();
        if (is_asked_for) {
            loop->expect_condemned();
        }
    }
}

void guest_observer::condemn(guest_ticket& ticket, queue_node& node, delivery deliver) noexcept {
    if (is_condemned()) {
        return;
    }
    event_loop* const loop = place_.lock();
    state_.store(condemned, std::memory_order_relaxed);
    if (loop != nullptr) {
        ticket.claim_.renew();
        node.deliver = deliver;
        loop->post(node);
    }
    place_.unlock(loop);
}

void guest_observer::expect_condemned(event_loop& loop) noexcept { loop.expect_condemned(); }

} // namespace coil::detail
