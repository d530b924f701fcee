// A waiting thread services the loops that do not run.
//
// A task that has gone to a context which has ended, or was never started, is in an inbox that no
// thread reads. A shutdown or a destructor that waits for the end of such a task would wait until
// the program runs that context, perhaps for ever. So it services these contexts: it delivers what
// was posted to them, as the beginning of their next run would, and destroys the remote children
// that are no longer wanted; their awaiters are notified. Everything else stays for the next run.

#include "event_loop_enter.hpp"

#include <coil/context/detail/event_loop.hpp>

#include <utility>

namespace coil::detail {

void event_loop::service_idle_loops() noexcept {
    listed_loop* one = claim_idle(
        [](listed_loop& loop) noexcept { return static_cast<event_loop&>(loop).has_messages(); });
    while (one != nullptr) {
        auto& claimed = static_cast<event_loop&>(*one);
        one = one->next_claimed; // read first: after this service another thread may claim the loop
        claimed.service();
    }
}

void event_loop::service() noexcept {
    {
        const scope here(*this);
        stop_.begin_service();
        deliver_inbox();
        // The tasks here have just arrived, so none has begun to wait for anything.
        tasks_.destroy_if([](const promise_base& task) noexcept {
            task.owner().refuse_unwanted();
            return task.owner().is_remote_child && is_unwanted(&task);
        });
        refuse_unwanted_functions();
        if (destructor_waits_.any_aside()) [[unlikely]] {
            kills_.process(*this); // the side stacks belong to this thread
        }
        stop_.end_service();
        signals_.delivered_idle.store(!tasks_.empty() || !functions_.empty() || !ready_.empty(),
                                      std::memory_order_relaxed);
    }
    end_service();
}

/// Called when a run begins, which then processes what services have delivered.
void event_loop::begin_own_run() noexcept {
    signals_.delivered_idle.store(false, std::memory_order_relaxed);
    stop_.begin_run(signals_.stop);
}

/// Called before the ring is closed: nothing is in flight, but destructors of the parameters of
/// tasks that never started may use the context.
void event_loop::discard_messages() noexcept {
    if (!begin_service()) {
        end_with_misuse("a context is destroyed, or its messages are discarded, while it runs.");
    }
    {
        const scope here(*this);
        begin_own_run();
        shut_down(); // also ends a stop that a destructor requested: nothing is left
    }
    end_service();
}

} // namespace coil::detail
