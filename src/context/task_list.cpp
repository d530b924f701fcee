#include <coil/context/detail/task_list.hpp>

namespace coil::detail {

/// listed → held_back and back
template <task_state To>
void task_list::move(promise_base& task, task_chain<To>& list) noexcept {
    unlink_task(task);
    task.link = task_link(task_state::none);
    list.insert(task);
}

void task_list::destroy_newest_held_back() noexcept {
    promise_base& newest = *held_back_.first();
    move(newest, listed_);
    destroy(newest);
}

void task_list::refuse_unwanted() noexcept {
    for (promise_base* first : {listed_.first(), held_back_.first()}) {
        for (promise_base* task = first; task != nullptr; task = task->next_task) {
            task->owner().refuse_unwanted();
        }
    }
}

void task_list::destroy_away_below(const nursery& parent, std::size_t at_most) noexcept {
    for (away_node* each = away_; each != nullptr && at_most > 0; --at_most) {
        away_node& node = *each;
        each = node.next; // a request unlinks nothing
        const promise_base* root = node.root_;
        while (root != nullptr && root->is_root() && root->owner().bound) {
            if (root->owner().parent_nursery() == &parent) {
                destroy_away(node);
                break;
            }
            root = root->owner().awaiting_root();
        }
    }
}

void task_list::hold_back() noexcept {
    while (!held_back_.empty()) {
        move(*held_back_.first(), listed_);
    }
    tree_unknown_ = false;
    visit_away([this](promise_base* task, away_node& node) noexcept {
        if (!node.status_(node, away_node::request::stop)) {
            return;
        }
        if (task == nullptr) {
            tree_unknown_ = true;
        } else if (task->link.is(task_state::listed)) {
            move(*task, held_back_);
        }
    });
    if (tree_unknown_) {
        for (promise_base* each = listed_.first(); each != nullptr;) {
            promise_base& task = *each;
            each = task.next_task;
            if (!task.owner().is_remote_child) {
                move(task, held_back_);
            }
        }
    }
}

} // namespace coil::detail
