#include "suspended_tasks.hpp"
#include "wait_cycles.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/detail/remote_child.hpp>

#include <optional>
#include <utility>

namespace coil::detail {

void kill_requests::note(remote_child_owner& child) noexcept {
    if (!child.is_linked()) {
        child.set_held_up(false); // it may have been held up on its previous loop
        child.push_to(requested_);
    }
    tasks_.kill_requested(child.child());
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
            const destructor_waits::on_behalf_of request(waits_, &child.kill_request());
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
            // A task that a shutdown holds back returns to the list once it may be destroyed.
            if (child.is_held_up() || !child.child().link.is(task_state::listed) ||
                !may_be_destroyed(child)) {
                child.push_to(held_up_);
                continue;
            }
            progress = true;
            const destructor_waits::on_behalf_of request(waits_, &child.kill_request());
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

bool kill_requests::may_be_destroyed_in_wait(const remote_child_owner& child) const noexcept {
    return child.came() == waits_.epoch() ||
           (waits_.destroy_only_older_than(child.kill_request()) &&
            (waits_.contain(&child.kill_request()) || child.is_released(waits_)));
}

void kill_requests::process_arrived() noexcept {
    destroy_free([this](remote_child_owner& child) noexcept {
        return may_be_destroyed_in_wait(child) &&
               !destructor_waits::use_of_task::exists(child.child());
    });
}

void kill_requests::process_blocked(event_loop& loop) noexcept {
    if (held_up_ != nullptr && release_from_cycles(loop)) {
        process_arrived();
    }
}

bool kill_requests::release_from_cycles(event_loop& loop) noexcept try {
    for (remote_child_owner* child = held_up_; child != nullptr; child = child->next) {
        if (!may_be_destroyed_in_wait(*child)) {
            child->block(waits_);
            any_blocked_ = true;
        }
    }
    if (!any_blocked_) {
        return false;
    }
    const wait_cycles cycles(waits_);
    std::optional<suspended_tasks> suspended;
    bool any_released = false;
    for (remote_child_owner* child = held_up_; child != nullptr; child = child->next) {
        if (!may_be_destroyed_in_wait(*child) &&
            waits_.destroy_only_older_than(child->kill_request()) && cycles.contain(*child)) {
            if (!processing_ && !suspended) {
                if (!fruitless_.is_next_due()) {
                    return false;
                }
                suspended.emplace(loop);
            }
            if (processing_ || suspended->contain(*child)) { // processing: no coroutine runs
                child->release(waits_);
                any_released = true;
            }
        }
    }
    if (suspended) {
        fruitless_.proved(any_released);
    }
    return any_released;
} catch (...) { // no memory: tried again when the destructor has waited a little longer
    return false;
}

void kill_requests::wait_ended() noexcept {
    fruitless_ = {};
    if (std::exchange(any_blocked_, false)) {
        for (remote_child_owner* first : {requested_, held_up_}) {
            for (remote_child_owner* child = first; child != nullptr; child = child->next) {
                child->unblock();
            }
        }
    }
}

} // namespace coil::detail
