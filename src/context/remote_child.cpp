#include "wait_cycles.hpp"

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/remote_child.hpp>
#include <coil/core/detail/backoff.hpp>

#include <utility>

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
        unblock();
        return;
    }
    came_ = loop->wait_epoch();
    if (is_asked_for) {
        loop->kills().note(*this);
    }
}

/// Called for a repeated request. The first one was made on behalf of a task that waits in next()
/// of a generator. Before it was fulfilled, the owner of the generator destroys the generator, and
/// that destructor waits, too; until it returns, the task in next() is blocked on this loop. So the
/// destructor becomes the cause of the request, in place of the task's own request. A cycle through
/// the task is still found, because it leads through this loop, on which the destructor waits.
void remote_child_owner::add_destructor_as_cause() noexcept {
    if (current_loop == nullptr) {
        return;
    }
    const destructor_waits& waits = current_loop->waiting_destructors();
    if (waits.is_destructor_the_cause() && !waits.contain(&request_)) {
        wait_cycles::set_cause(request_, *waits.cause());
    }
}

void remote_child_owner::request_kill(remote_child_ticket& ticket, queue_node& node,
                                      delivery deliver) noexcept {
    if (is_kill_requested()) {
        add_destructor_as_cause();
        return;
    }
    event_loop* const loop = place_.lock();
    request_.because_of(current_loop != nullptr ? current_loop->waiting_destructors().cause()
                                                : nullptr);
    state_.store(kill_requested, std::memory_order_release);
    if (loop != nullptr) {
        ticket.claim_.renew();
        ticket.is_requesting_.store(true, std::memory_order_relaxed);
        node.deliver = deliver;
        loop->post(node);
    }
    place_.unlock(loop);
}

void remote_child_owner::block(const destructor_waits& at) noexcept {
    if (!blocked_) {
        blocked_ = wait_cycles::add(*this, at);
    }
}

void remote_child_owner::unblock() noexcept {
    if (std::exchange(blocked_, false)) {
        wait_cycles::remove(*this);
    }
    released_in_ = 0;
}

/// If the task has moved since, its new loop noted the request when the task arrived (moved_to()).
void remote_child_owner::note_kill_request(event_loop& loop) noexcept {
    event_loop* const now = place_.lock();
    place_.unlock(now);
    if (now == &loop) {
        loop.kills().note(*this);
    }
}

} // namespace coil::detail
