#include "frame_owners.hpp"
#include "suspended_tasks.hpp"
#include "wait_cycles.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/detail/remote_child.hpp>

#include <cstdint>
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

/// The next requested child that may be destroyed now. The others before it are held up.
template <class Predicate>
remote_child_owner* kill_requests::take_free(Predicate may_be_destroyed) noexcept {
    while (requested_ != nullptr) {
        remote_child_owner& child = *requested_;
        child.unlink();
        // A task that a shutdown holds back returns to the list once it may be destroyed.
        if (!child.is_held_up() && child.child().link.is(task_state::listed) &&
            !destructor_waits::use_of_task::exists(child.child()) && may_be_destroyed(child)) {
            return &child;
        }
        child.push_to(held_up_);
    }
    return nullptr;
}

template <class Predicate>
void kill_requests::destroy_free(Predicate may_be_destroyed) noexcept {
    for (bool progress = true; progress && (requested_ != nullptr || held_up_ != nullptr);) {
        while (held_up_ != nullptr) {
            remote_child_owner& child = *held_up_;
            child.unlink();
            child.push_to(requested_);
            child.set_held_up(false);
        }
        request_below(may_be_destroyed);
        const std::uint64_t before = destroyed_;
        while (requested_ != nullptr) {
            waits_.run_aside([this, may_be_destroyed]() noexcept {
                while (remote_child_owner* const child = take_free(may_be_destroyed)) {
                    ++destroyed_;
                    const destructor_waits::on_behalf_of request(waits_, &child->kill_request());
                    task_list::destroy(child->child());
                }
            });
        }
        progress = destroyed_ != before;
    }
}

void kill_requests::process(event_loop& loop) noexcept {
    constexpr unsigned often = 32; // after that a message is unlikely: check less often
    COIL_ASSERT(!between_turns_);
    between_turns_ = true;
    std::optional<frame_owners> owners; // one snapshot for each iteration, if necessary
    for (unsigned waited = 0;;) {
        owners.reset();
        destroy_free([this, &owners](remote_child_owner& child) noexcept {
            return may_be_destroyed_between_turns(child, owners);
        });
        if (!waits_.any_aside()) {
            break;
        }
        owners.reset(); // frames are destroyed from here on
        loop.refuse_unwanted();
        event_loop::service_idle_loops();
        waits_.resume_aside();
        if (waits_.any_aside()) {
            loop.wait_for_messages(++waited > often);
        }
    }
    between_turns_ = false;
    loop.ready_.release();
}

/// Whether no nursery that is being destroyed can be this task's, without a search: the task is
/// below the destructor of another one, or there is no such nursery.
bool kill_requests::cannot_own_nursery(const remote_child_owner& child) const noexcept {
    return waits_.nurseries() == nullptr || waits_.is_because_of_any(&child.kill_request());
}

/// No coroutine is active. But a destructor that waits may be destroying a nursery which another
/// task owns: that task's destructor would destroy it again.
bool kill_requests::may_be_destroyed_between_turns(
    remote_child_owner& child, std::optional<frame_owners>& owners) const noexcept try {
    if (cannot_own_nursery(child)) {
        return true;
    }
    if (!owners) {
        owners.emplace().add(tasks_, [](const auto&...) noexcept {});
    }
    const auto* one = waits_.nurseries();
    while (one != nullptr && owners->owner_of(&one->which()) != &child.child()) {
        one = one->earlier();
    }
    return one == nullptr;
} catch (...) { // no memory: tried again later
    return false;
}

bool kill_requests::may_be_destroyed_in_wait(const remote_child_owner& child) const noexcept {
    if (between_turns_) { // but a nursery that is being destroyed may be this task's
        return cannot_own_nursery(child);
    }
    return child.came() == waits_.epoch() || waits_.contain(&child.kill_request()) ||
           child.is_released(waits_);
}

void kill_requests::process_arrived() noexcept {
    destroy_free([this](const remote_child_owner& child) noexcept {
        return may_be_destroyed_in_wait(child);
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
    if (!any_blocked_ || !runs_coroutines_) {
        return false;
    }
    const wait_cycles cycles(waits_);
    std::optional<suspended_tasks> suspended;
    bool any_released = false;
    for (remote_child_owner* child = held_up_; child != nullptr; child = child->next) {
        if (!may_be_destroyed_in_wait(*child) && cycles.contain(*child)) {
            if (!suspended) {
                if (!fruitless_.is_next_due()) {
                    return false;
                }
                suspended.emplace(loop);
                find_cause(suspended->owner_of_first_left());
            }
            if (waits_.contain_by_any_cause(&child->kill_request())
                    ? suspended->contain_if_below(child->child())
                    : suspended->contain(child->child())) {
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

void kill_requests::find_cause(promise_base* owner) noexcept {
    if (owner != nullptr && owner->owner().is_remote_child && owner->owner().is_kill_requested() &&
        waits_.outermost().began_without_cause()) {
        wait_cycles::set_cause(waits_.outermost(),
                               static_cast<remote_child_owner&>(owner->owner()).kill_request());
    }
}

void kill_requests::wait_ended(event_loop& loop) noexcept {
    if (waits_.any_aside() && !between_turns_ && !loop.is_ending()) {
        loop.ready_.hold();
    }
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
