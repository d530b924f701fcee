#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/detail/backoff.hpp>

namespace coil::detail {

void awaiter_base::finish() noexcept {
    COIL_ASSERT(pending());
    if (attached()) [[unlikely]] {
        detach();
    }
    if (stop_is_posted()) [[unlikely]] { // even after stop_observing() has detached the callback
        enter(phase::done);
        return; // the delivery of the stop makes the waiter ready
    }
    enter(phase::done);
    make_waiter_ready();
}

void awaiter_base::make_waiter_ready() noexcept {
    if (node().coroutine) {
        loop().make_ready(node(), node().coroutine);
    }
}

bool awaiter_base::leave() noexcept {
    stop_observing();
    const bool waits =
        node().coroutine != nullptr && (pending() || loop().withdraw(node(), node().coroutine));
    node().coroutine = nullptr;
    // The stop was for this waiter; a coroutine that joins later must not see it.
    word_.store(word_.load(std::memory_order_relaxed) & ~(posted | delivered),
                std::memory_order_relaxed);
    return waits;
}

void awaiter_base::stop_observing() noexcept {
    detach();
    for (backoff wait; stop_is_posted(); wait.once_more()) {
        loop().deliver_inbox(); // the post has arrived, or will within a few instructions
    }
}

void awaiter_base::post_stop() noexcept {
    event_loop& owner = loop();
    word_.fetch_or(posted, std::memory_order_relaxed); // the owner sees it after detach()
    owner.post(static_cast<stop_callback_base&>(*this));
}

bool awaiter_base::stop_delivered() noexcept {
    COIL_ASSERT(stop_is_posted() && on_owner_thread());
    word_.fetch_or(delivered, std::memory_order_relaxed);
    if (is(phase::done)) {
        make_waiter_ready();
    }
    return pending();
}

void awaiter_base::leave_on_destruction() noexcept {
    if (is(phase::done)) {
        leave_ready_queue();
    }
    // If the memory is reused for a frame, leaf_search must not take this for a wait.
    enter(phase::resumed);
}

void awaiter_base::leave_ready_queue() noexcept {
    for (backoff wait; stop_is_posted(); wait.once_more()) {
        loop().deliver_inbox();
    }
    if (node().coroutine) {
        loop().withdraw(node(), node().coroutine);
    }
}

} // namespace coil::detail
