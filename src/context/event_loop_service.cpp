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

void event_loop::service_idle_loops() noexcept {
    listed_loop* one = claim_idle(
        [](listed_loop& loop) noexcept { return static_cast<event_loop&>(loop).has_messages(); });
    while (one != nullptr) {
        auto& visited = static_cast<event_loop&>(*one);
        one = one->next_claimed; // which is another visitor's as soon as this visit is over
        visited.service();
    }
}

void event_loop::service() noexcept {
    event_loop* const outer = std::exchange(current_loop, this);
    std::swap(task_list::removed_on_this_thread, tasks_removed_);
    serviced_ = true;
    deliver_inbox();
    destroy_unwanted_children();
    refuse_unwanted_functions();
    serviced_ = false;
    delivered_idle_.store(!tasks_.empty() || !functions_.empty() || !ready_.empty(),
                          std::memory_order_relaxed);
    publish();
    std::swap(task_list::removed_on_this_thread, tasks_removed_);
    current_loop = outer;
    end_service();
}

/// None of them has begun to wait for anything here: they have just come.
void event_loop::destroy_unwanted_children() noexcept {
    promise_base* root = tasks_.first();
    while (root != nullptr) {
        root->owner().refuse_unwanted();
        if (root->owner().is_remote_child && is_unwanted(root)) {
            destroy_task(*root);
            root = tasks_.first(); // its destructors may have changed the list
        } else {
            root = root->next_task;
        }
    }
}

} // namespace coil::detail
