#include <coil/context/detail/current_loop.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/context/remote_child.hpp>
#include <coil/core/backoff.hpp>

namespace coil::detail {

event_loop* remote_child_owner::place::lock() noexcept {
    for (backoff wait;; wait.once_more()) {
        std::uintptr_t seen = word_.load(std::memory_order_relaxed) & ~locked;
        if (word_.compare_exchange_weak(seen, seen | locked, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
            return reinterpret_cast<event_loop*>(seen);
        }
    }
}

void remote_child_owner::place::unlock(event_loop* loop) noexcept {
    word_.store(reinterpret_cast<std::uintptr_t>(loop), std::memory_order_release);
}

void remote_child_owner::moved_to(event_loop* loop) noexcept {
    place_.lock();
    const bool is_asked_for = is_kill_requested();
    place_.unlock(loop);
    if (loop == nullptr) {
        if (is_linked()) {
            unlink();
        }
        return;
    }
    came_ = loop->wait_epoch();
    if (is_asked_for) {
        loop->note_kill_request(*this);
    }
}

void remote_child_owner::request_kill(remote_child_ticket& ticket, queue_node& node,
                                      delivery deliver) noexcept {
    if (is_kill_requested()) {
        return;
    }
    event_loop* const loop = place_.lock();
    cause_ = current_loop != nullptr ? current_loop->waiting_destructors().cause() : nullptr;
    state_.store(kill_requested, std::memory_order_release);
    if (loop != nullptr) {
        ticket.claim_.renew();
        node.deliver = deliver;
        loop->post(node);
    }
    place_.unlock(loop);
}

/// If the task has moved since, its new loop noted the request when the task arrived (moved_to()).
void remote_child_owner::note_kill_request(event_loop& loop) noexcept {
    event_loop* const now = place_.lock();
    place_.unlock(now);
    if (now == &loop) {
        loop.note_kill_request(*this);
    }
}

} // namespace coil::detail
