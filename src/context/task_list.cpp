#include "frame_owners.hpp"

#include <coil/base/late.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/remote_child.hpp>
#include <coil/context/detail/task_list.hpp>

namespace coil::detail {

/// Moves a task between the lists: listed → held_back, or held_back → listed.
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
        for (promise_base* task = first; task != nullptr; task = next_listed(*task)) {
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
            root = root->owner().owning_root();
        }
    }
}

/// The value of `next` of a task that one await holds back; it is the task itself if several do.
/// `next` is free for this purpose: a task that awaits has run, and so is in no queue.
static constexpr queue_node* held_by_one = nullptr;

/// Asks the remote operation of an await to end, and holds back the task that owns the await until
/// it has ended.
void task_list::hold_while_away(promise_base& task, away_node& node,
                                away_node::request what) noexcept {
    late<destructor_waits::on_behalf_of> request;
    if (task.owner().is_remote_child) {
        const auto& child = static_cast<const remote_child_owner&>(task.owner());
        request.emplace(current_loop->waiting_destructors(), &child.kill_request());
        what = child.is_kill_requested() ? away_node::request::destroy : what;
    }
    if (!node.status_(node, what)) {
        return;
    }
    if (task.link.is(task_state::listed)) {
        move(task, held_back_);
        task.next = held_by_one;
    } else if (task.link.is(task_state::held_back)) {
        task.next = &task; // held back by several awaits
    }
}

void task_list::await_ends(const away_node& node) noexcept {
    if (!all_holders_known_ || !node.is_linked()) {
        return;
    }
    promise_base* const task = top_level_owner_of(node.root_);
    if (task != nullptr && task->link.is(task_state::held_back) && task->next == held_by_one) {
        move(*task, listed_);
    }
}

/// Holds back the known owners of outstanding remote operations. Returns whether all are known.
bool task_list::hold_known_owners() noexcept {
    bool all_known = true;
    visit_away([&](promise_base* task, away_node& node) noexcept {
        if (task != nullptr) {
            hold_while_away(*task, node, away_node::request::stop);
        } else if (node.status_(node, away_node::request::stop)) {
            all_known = false;
        }
    });
    return all_known;
}

/// The same for the remote operations whose owner is unknown: searches the frames of all tasks for
/// the one whose memory contains the await. If the owner is a remote child, it is recorded, so that
/// no further search is needed.
bool task_list::hold_found_owners() noexcept try {
    frame_owners owners;
    owners.add(*this, [](const auto&...) noexcept {});
    bool all_known = true;
    visit_away([&](const promise_base* task, away_node& node) noexcept {
        if (task != nullptr || !node.status_(node, away_node::request::stop)) {
            return;
        }
        promise_base* const owner = owners.owner_of_root(node.root_);
        if (owner == nullptr || !owner->owner().is_remote_child) {
            all_known = false;
            return;
        }
        node.root_ = owner;
        hold_while_away(*owner, node, away_node::request::destroy);
    });
    return all_known;
} catch (...) { // no memory
    return false;
}

void task_list::hold_back() noexcept {
    const bool has_searched = tree_unknown_ && holds_back();
    all_holders_known_ = false; // a request may end an operation at once: await_ends()
    while (!held_back_.empty()) {
        move(*held_back_.first(), listed_);
    }
    tree_unknown_ = !hold_known_owners() && (has_searched || !hold_found_owners());
    if (tree_unknown_) {
        for (promise_base* each = listed_.first(); each != nullptr;) {
            promise_base& task = *each;
            each = next_listed(task);
            if (!task.owner().is_remote_child) {
                move(task, held_back_);
            }
        }
    }
    all_holders_known_ = !tree_unknown_;
}

} // namespace coil::detail
