#include <coil/core/detail/promise.hpp>
#include <coil/exec/asyncify.hpp>

namespace coil::detail {

/// Posts to the inbox even of this thread's own loop, which takes messages after the ready
/// coroutines have run.
bool requeue_op::requeue(std::coroutine_handle<> waiter, promise_base* nearest) noexcept {
    refuse_resumed_each_round(waiter);
    begin_move(waiter, nearest, resume_target::here());
    if (target().place.executor) {
        return depart_or_drop();
    }
    event_loop& loop = required_loop();
    settle_on_delivery();
    loop.post(*this);
    return true;
}

void requeue_op::take_out() noexcept {
    require_own_thread();
    if (target().loop != nullptr) {
        target().loop->deliver_inbox();
    }
    if (is_elsewhere()) {
        wait_until_back(nullptr);
    }
}

} // namespace coil::detail
