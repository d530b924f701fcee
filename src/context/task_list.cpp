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

namespace {

/// The awaits that hold back a task: their number, and whether any of them was only asked to stop.
/// Stored in the task's `next`, which is free: a task that awaits has run, and so is in no queue.
class holding_awaits {
public:
    explicit holding_awaits(promise_base& task) noexcept : task_(task) {}

    void clear() noexcept { task_.next = nullptr; }
    void add(bool only_to_stop) noexcept {
        set((word() + one) | (only_to_stop ? asked_to_stop : 0));
    }
    /// Returns whether it was the last one.
    [[nodiscard]] bool remove() noexcept {
        COIL_ASSERT(word() >= one);
        set(word() - one);
        return word() < one;
    }
    [[nodiscard]] bool any_asked_to_stop() const noexcept { return (word() & asked_to_stop) != 0; }

private:
    static constexpr std::uintptr_t asked_to_stop = 1;
    static constexpr std::uintptr_t one = 2;

    [[nodiscard]] std::uintptr_t word() const noexcept {
        return reinterpret_cast<std::uintptr_t>(task_.next);
    }
    void set(std::uintptr_t word) noexcept { task_.next = reinterpret_cast<queue_node*>(word); }

    promise_base& task_;
};

} // namespace

void away_node::left_while_counted() noexcept {
    if (current_loop != nullptr) {
        current_loop->tasks().set_may_hold_back_less();
    }
}

/// Asks the remote operation of an await to end, and holds back the task that owns the await until
/// it has ended.
void task_list::hold_while_away(promise_base& task, away_node& node,
                                away_node::request what) noexcept {
    late<destructor_waits::on_behalf_of> request;
    if (task.owner().is_remote_child) {
        const auto& child = static_cast<const remote_child_owner&>(task.owner());
        request.emplace(current_loop->waiting_destructors(), &child.kill_request());
        what = child.is_kill_requested() ? away_node::request::destroy : what;
    } else if (current_loop != nullptr) { // the task is not below a destructor that waits here
        request.emplace(current_loop->waiting_destructors(), nullptr);
    }
    if (!node.status_(node, what)) {
        return;
    }
    if (task.link.is(task_state::listed)) {
        move(task, held_back_);
        holding_awaits(task).clear();
    } else if (!task.link.is(task_state::held_back)) {
        return; // it is being destroyed
    }
    node.visited_ = away_node::visit::counted;
    holding_awaits(task).add(what == away_node::request::stop);
}

void task_list::await_ends(away_node& node) noexcept {
    if (node.visited_ != away_node::visit::counted) {
        return;
    }
    node.visited_ = away_node::visit::done;
    promise_base* const task = top_level_owner_of(node.root_);
    if (task == nullptr || !task->link.is(task_state::held_back) ||
        !holding_awaits(*task).remove()) {
        return;
    }
    if (all_holders_known_) {
        move(*task, listed_);
    } else {
        may_hold_back_less_ = true;
    }
}

void task_list::kill_requested(promise_base& task) noexcept {
    if (task.link.is(task_state::held_back) && holding_awaits(task).any_asked_to_stop()) {
        may_hold_back_less_ = true;
    }
}

bool task_list::has_unknown_owners() const noexcept {
    const away_node* each = away_;
    while (each != nullptr && top_level_owner_of(each->root_) != nullptr) {
        each = each->next;
    }
    return each != nullptr;
}

/// Holds back the known owners of outstanding remote operations. Returns whether all are known.
bool task_list::hold_known_owners() noexcept {
    bool all_known = true;
    visit_away([&](promise_base* task, away_node& node) noexcept {
        node.visited_ = away_node::visit::done;
        if (task != nullptr) {
            hold_while_away(*task, node, away_node::request::stop);
        } else if (node.status_(node, away_node::request::stop)) {
            all_known = false;
        }
    });
    return all_known;
}

/// The same for the remote operations whose owner is unknown, which are below a scope that nothing
/// joins: the owner is the task in one of whose frames the scope lies. It is recorded, so that no
/// further search is needed. What the scope's children await is destroyed rather than asked to
/// stop, as when the scope is left.
bool task_list::hold_found_owners() noexcept try {
    frame_owners owners;
    owners.add(*this, [](const auto&...) noexcept {});
    bool all_known = true;
    visit_away([&](const promise_base* task, away_node& node) noexcept {
        if (task != nullptr || !node.status_(node, away_node::request::stop)) {
            return;
        }
        promise_base* const owner = owners.owner_of_root(node.root_);
        if (owner == nullptr) {
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
    all_holders_known_ = false; // a request may end an operation, and call await_ends(), at once
    may_hold_back_less_ = false;
    for (away_node* each = away_; each != nullptr; each = each->next) {
        each->visited_ = away_node::visit::none; // await_ends() ignores it until it is visited
    }
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
                holding_awaits(task).clear();
            }
        }
    }
    all_holders_known_ = !tree_unknown_;
}

} // namespace coil::detail
