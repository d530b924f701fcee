#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/remote_child.hpp>

namespace coil::detail {

namespace {

bool is_requested(const promise_base& task) noexcept {
    const task_owner& owner = task.owner();
    return owner.is_remote_child && owner.is_kill_requested();
}

} // namespace

bool kill_requests::is_due(const promise_base& task) noexcept {
    return is_requested(task) && !tasks_.has_something_away(task);
}

void kill_requests::process() noexcept {
    COIL_ASSERT(!processing_);
    pending_ = false;
    processing_ = true;
    tasks_.destroy_if([this](const promise_base& task) noexcept {
        const bool due = is_due(task);
        pending_ = pending_ || (!due && is_requested(task));
        return due;
    });
    processing_ = false;
}

void kill_requests::process_arrived() noexcept {
    if (!pending_) {
        return;
    }
    tasks_.destroy_if([this](const promise_base& task) noexcept {
        return is_requested(task) &&
               (processing_ || static_cast<const remote_child_owner&>(task.owner()).came() ==
                                   wait_epoch_.epoch()) &&
               is_due(task);
    });
}

} // namespace coil::detail
