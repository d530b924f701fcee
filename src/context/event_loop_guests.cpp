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
#include <coil/context/guest.hpp>

#include <utility>

namespace coil::detail {

/// Those that have something elsewhere are looked at again in the next turn, which its answer
/// brings.
void event_loop::end_condemned_guests() noexcept {
    condemned_ = false;
    promise_base* root = roots_.first();
    while (root != nullptr) {
        if (!root->observer().is_guest || !root->observer().is_condemned()) {
            root = root->next_root;
        } else if (has_something_away(*root)) {
            condemned_ = true;
            root = root->next_root;
        } else {
            ending_guest_ = true;
            destroy_root(*root);
            ending_guest_ = false;
            root = roots_.first(); // its destructors may have changed the list
        }
    }
}

void event_loop::end_condemned_here() noexcept {
    if (!condemned_) {
        return;
    }
    promise_base* root = roots_.first();
    while (root != nullptr) {
        const root_observer& observer = root->observer();
        if (observer.is_guest && observer.is_condemned() &&
            (ending_guest_ || static_cast<const guest_observer&>(observer).came() == waits_) &&
            !has_something_away(*root)) {
            destroy_root(*root);
            root = roots_.first();
        } else {
            root = root->next_root;
        }
    }
}

void event_loop::refuse_unwanted() noexcept {
    for (promise_base* first : {roots_.first(), held_back_.first()}) {
        for (promise_base* root = first; root != nullptr; root = root->next_root) {
            root->observer().refuse_unwanted();
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
