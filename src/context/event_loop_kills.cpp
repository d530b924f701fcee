// How a loop ends the guests that are asked for: tasks that run here while a coroutine elsewhere
// waits for them, and whose frame that coroutine's is about to be destroyed with.
//
// A destructor elsewhere waits for it, so that it must not depend on what any coroutine does: a
// guest is destroyed where it stands, as its parent is. It does not run while the turn ends it, and
// its own tasks elsewhere are asked for first, so that its destructors have nothing to wait for.
//
// A destructor waits for tasks below the frame that it is of; a thread is in one such destructor at
// a time, and what it waits for is ended by the turn of the context where it is, or in the wait of
// a destructor there when it has not run since that began. So who waits for whom follows the tree
// of tasks downwards, except where the thread of a guest is in a destructor for something else.

#include <coil/context/event_loop.hpp>
#include <coil/context/remote_child.hpp>

#include <utility>

namespace coil::detail {

/// Those that have something elsewhere are looked at again in the next turn, which its answer
/// brings.
void event_loop::process_kill_requests() noexcept {
    kill_requested_ = false;
    promise_base* root = tasks_.first();
    while (root != nullptr) {
        if (!root->owner().is_remote_child || !root->owner().is_kill_requested()) {
            root = root->next_task;
        } else if (has_something_away(*root)) {
            kill_requested_ = true;
            root = root->next_task;
        } else {
            killing_ = true;
            destroy_task(*root);
            killing_ = false;
            root = tasks_.first(); // its destructors may have changed the list
        }
    }
}

void event_loop::serve_kill_requests() noexcept {
    if (!kill_requested_) {
        return;
    }
    promise_base* root = tasks_.first();
    while (root != nullptr) {
        const task_owner& observer = root->owner();
        if (observer.is_remote_child && observer.is_kill_requested() &&
            (killing_ || static_cast<const remote_child_owner&>(observer).came() == wait_epoch_) &&
            !has_something_away(*root)) {
            destroy_task(*root);
            root = tasks_.first();
        } else {
            root = root->next_task;
        }
    }
}

void event_loop::refuse_unwanted() noexcept {
    for (promise_base* first : {tasks_.first(), held_back_.first()}) {
        for (promise_base* root = first; root != nullptr; root = root->next_task) {
            root->owner().refuse_unwanted();
        }
    }
    refuse_unwanted_functions();
}

/// A function that was posted here by a task elsewhere, also below a shield(), which cannot be kept
/// when what waits for that task keeps this loop from calling it.
void event_loop::refuse_unwanted_functions() noexcept {
    if (!functions_.empty()) {
        const bool outer = std::exchange(refusing_, true);
        functions_.call_each(*this);
        refusing_ = outer;
    }
}

/// Asks for it as well.
bool event_loop::has_something_away(const promise_base& root) noexcept {
    bool any = false;
    for (away_node* each = away_; each != nullptr;) {
        away_node& node = *each;
        each = node.next; // asking unlinks nothing
        if (top_level_of(node.root_) == &root) {
            any = node.status_(node, away_node::request::destroy) || any;
        }
    }
    return any;
}

} // namespace coil::detail
