// What a loop that waits does for loops that do not run.
//
// A task that has gone to a context which has ended, or was never started, lies in an inbox that
// nobody reads. Whoever waits for its end, a shutdown or a destructor, would wait for as long as it
// pleases the program. So it visits those contexts: it takes in what was posted to them, as their
// next run would begin with, and destroys the tasks that another context's coroutine awaits and
// that are not wanted any more; that coroutine is told. Everything else stays for the next run.

#include <coil/context/event_loop.hpp>

#include <utility>

namespace coil::detail {

void event_loop::visit_others() noexcept {
    listed_loop* one = visit_all(
        [](listed_loop& loop) noexcept { return static_cast<event_loop&>(loop).has_mail(); });
    while (one != nullptr) {
        auto& visited = static_cast<event_loop&>(*one);
        one = one->next_visited; // which is another visitor's as soon as this visit is over
        visited.take_visit();
    }
}

void event_loop::take_visit() noexcept {
    event_loop* const outer = std::exchange(current_loop, this);
    std::swap(root_list::removed_on_this_thread, roots_removed_);
    visited_ = true;
    deliver_inbox();
    end_unwanted_guests();
    refuse_unwanted_functions();
    visited_ = false;
    left_over_.store(!roots_.empty() || !functions_.empty() || !ready_.empty(),
                     std::memory_order_relaxed);
    publish();
    std::swap(root_list::removed_on_this_thread, roots_removed_);
    current_loop = outer;
    end_visit();
}

/// None of them has begun to wait for anything here: they have just come.
void event_loop::end_unwanted_guests() noexcept {
    promise_base* root = roots_.first();
    while (root != nullptr) {
        root->observer().refuse_unwanted();
        if (root->observer().is_guest && is_unwanted(root)) {
            destroy_root(*root);
            root = roots_.first(); // its destructors may have changed the list
        } else {
            root = root->next_root;
        }
    }
}

} // namespace coil::detail
