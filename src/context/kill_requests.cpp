#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/remote_child.hpp>

namespace coil::detail {

namespace {

/// Null unless it was requested.
const remote_child_owner* requester_of(const promise_base& task) noexcept {
    const task_owner& owner = task.owner();
    return owner.is_remote_child && owner.is_kill_requested()
               ? &static_cast<const remote_child_owner&>(owner)
               : nullptr;
}

} // namespace

bool kill_requests::destroy_if_free(promise_base& task,
                                    const remote_child_owner& requester) noexcept {
    const destructor_waits::on_behalf_of request(waits_, requester.cause());
    if (tasks_.has_something_away(task)) {
        return false;
    }
    tasks_.destroy(task);
    return true;
}

void kill_requests::process() noexcept {
    COIL_ASSERT(!processing_);
    pending_ = false;
    processing_ = true;
    tasks_.scan([this](promise_base& task) noexcept {
        const remote_child_owner* const requester = requester_of(task);
        if (requester == nullptr) {
            return false;
        }
        const bool destroyed = destroy_if_free(task, *requester);
        pending_ = pending_ || !destroyed;
        return destroyed;
    });
    processing_ = false;
}

void kill_requests::process_arrived() noexcept {
    if (!pending_) {
        return;
    }
    tasks_.scan([this](promise_base& task) noexcept {
        const remote_child_owner* const requester = requester_of(task);
        return requester != nullptr &&
               (processing_ || requester->came() == waits_.epoch() ||
                waits_.contain(requester->cause())) &&
               destroy_if_free(task, *requester);
    });
}

} // namespace coil::detail
