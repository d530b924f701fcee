#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/remote_child.hpp>

namespace coil::detail {

void kill_requests::note(remote_child_owner& child) noexcept {
    if (!child.is_linked()) {
        child.set_held_up(false); // it may have been held up on its previous loop
        child.push_to(requested_);
    }
}

template <class Predicate>
void kill_requests::request_below(Predicate may_be_destroyed) noexcept {
    tasks_.visit_away([&](const promise_base* task, away_node& node) noexcept {
        if (task == nullptr || !task->owner().is_remote_child ||
            !task->owner().is_kill_requested()) {
            return;
        }
        auto& child = static_cast<remote_child_owner&>(task->owner());
        if (may_be_destroyed(child)) {
            const destructor_waits::on_behalf_of request(waits_, child.cause());
            if (task_list::destroy_away(node)) {
                child.set_held_up(true);
            }
        }
    });
}

template <class Predicate>
void kill_requests::destroy_free(Predicate may_be_destroyed) noexcept {
    for (bool progress = true; progress && pending();) {
        progress = false;
        while (held_up_ != nullptr) {
            remote_child_owner& child = *held_up_;
            child.unlink();
            child.push_to(requested_);
            child.set_held_up(false);
        }
        request_below(may_be_destroyed);
        while (requested_ != nullptr) {
            remote_child_owner& child = *requested_;
            child.unlink();
            if (child.is_held_up() || !may_be_destroyed(child)) {
                child.push_to(held_up_);
                continue;
            }
            progress = true;
            const destructor_waits::on_behalf_of request(waits_, child.cause());
            task_list::destroy(child.child());
        }
    }
}

void kill_requests::process() noexcept {
    COIL_ASSERT(!processing_);
    processing_ = true;
    destroy_free([](const remote_child_owner&) noexcept { return true; });
    processing_ = false;
}

void kill_requests::process_arrived() noexcept {
    destroy_free([this](const remote_child_owner& child) noexcept {
        return processing_ || child.came() == waits_.epoch() || waits_.contain(child.cause());
    });
}

} // namespace coil::detail
