// Reads a loop's lists of tasks and of scopes for a snapshot.

#include "task_capture.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>

#include <algorithm>
#include <utility>

namespace coil::detail {

namespace {

/// Begins to load the next task, if there is one: a list of many tasks is in no cache.
void prefetch(const promise_base* task) noexcept {
    if (task != nullptr) {
        __builtin_prefetch(task);
        __builtin_prefetch(task + 1);
    }
}

} // namespace

bool task_capture::do_stage() {
    switch (stage_) {
    case stage::begin:
        begin();
        return true;
    case stage::away:
        return add_away();
    case stage::listed:
        return add_list(loop_.tasks_.listed());
    case stage::held_back:
        return add_list(loop_.tasks_.held_back());
    case stage::groups:
        return add_groups();
    case stage::complete:
        break;
    }
    return true;
}

bool task_capture::add_away() {
    return away_cursor_.visit(loop_.tasks_.away(), [this](promise_base* root) {
        if (root != nullptr) {
            away_.add(result_.memory) = frame_of(*root);
        }
        return !is_time_over();
    });
}

void task_capture::begin_list(std::size_t members) noexcept {
    ends_ = {};
    ends_.members = members;
    ends_.reserved = left_ / 2;
    ends_.has_begun = true;
}

void task_capture::begin_oldest() noexcept {
    ends_.reserved = 0;
    ends_.is_at_oldest = true;
}

void task_capture::end_list(record_list<task_record>& to, omission& omitted) noexcept {
    if (ends_.has_gap) {
        cut_ = true;
        omitted.behind = to.size();
    }
    to.append(ends_.oldest);
    if (ends_.has_gap) { // members that have ended since are counted
        omitted.count = ends_.members > to.size() ? ends_.members - to.size() : 1;
    }
    ends_ = {};
}

/// If the first of the two lists reaches the limit, the number of omitted tasks includes those of
/// the second.
template <task_state State>
bool task_capture::add_list(task_chain<State>& list) {
    if (result_.omitted.count > 0) {
        return true;
    }
    if (!ends_.has_begun) {
        begin_list(result_.top_level);
    }
    if (!ends_.is_at_oldest && !add_newest(list)) {
        return false;
    }
    if (ends_.is_at_oldest && !add_oldest(list)) {
        return false;
    }
    newest_end_.leave();
    end_list(result_.tasks, result_.omitted);
    return true;
}

/// Returns false if the time is over. Otherwise all are recorded, or the oldest have to follow.
template <task_state State>
bool task_capture::add_newest(task_chain<State>& list) {
    promise_base* task = task_cursor_.is_placed() ? task_cursor_.leave() : list.first();
    for (; task != nullptr; task = next_listed(*task)) {
        ++visited_;
        if (task_cursor::is_cursor(*task)) { // the cursor of another snapshot
            continue;
        }
        if (is_full()) {
            newest_end_.place_before(*task);
            begin_oldest();
            return true;
        }
        if (is_time_over()) {
            task_cursor_.place_before(*task);
            return false;
        }
        prefetch(next_listed(*task));
        add_root(*task, result_.tasks);
    }
    return true;
}

template <task_state State>
bool task_capture::add_oldest(task_chain<State>& list) {
    promise_base* task =
        list.previous(task_cursor_.is_placed() ? task_cursor_.place() : list.end());
    task_cursor_.leave();
    for (; task != nullptr && task != &newest_end_.place(); task = list.previous(*task)) {
        ++visited_;
        if (task_cursor::is_cursor(*task)) { // the cursor of another snapshot
            continue;
        }
        if (is_full()) {
            ends_.has_gap = true;
            break;
        }
        if (is_time_over()) {
            task_cursor_.place_behind(*task);
            return false;
        }
        prefetch(list.previous(*task));
        add_root(*task, ends_.oldest);
    }
    return true;
}

bool task_capture::add_groups() {
    listed_children* group = loop_.tasks_.nurseries();
    if (group_cursor_.is_placed()) {
        listed_children* const current = std::exchange(group_, nullptr);
        // A group that has lost its children since may not exist any more; its cursors are then not
        // placed.
        const bool goes_on = child_cursor_ && child_cursor_->is_placed() &&
                             (!newest_child_end_ || newest_child_end_->is_placed());
        if (current != nullptr && goes_on && !add_children_of(*current)) {
            return false;
        }
        if (current != nullptr && !goes_on) {
            end_list(result_.groups.back().children, result_.groups.back().omitted);
        }
        child_cursor_.reset();
        newest_child_end_.reset();
        group = group_cursor_.leave();
    }
    for (; group != nullptr; group = group->next_in_list()) {
        const std::size_t running = group->running_children();
        const std::size_t waiting = group->waiting_children();
        if (running + waiting == 0) { // the cursor of another snapshot
            continue;
        }
        if (groups_ == limit_) {
            result_.has_more_groups = cut_ = true;
            break;
        }
        ++groups_;
        promise_base* const by = group->awaiting_task();
        const void* const joined_by = by != nullptr ? frame_of(*by) : nullptr;
        if (by != nullptr) {
            joins_.add(result_.memory) = {joined_by, group};
        }
        group_record& record = result_.groups.add(result_.memory);
        record.address = group;
        record.waiting = waiting;
        record.joined_by = joined_by;
        begin_list(running);
        if (left_ > 0) {
            if (!add_children_of(*group)) {
                return false;
            }
            continue;
        }
        ends_.has_gap = running > 0;
        end_list(record.children, record.omitted);
        if (is_time_over()) {
            group_cursor_.place_after(*group);
            return false;
        }
    }
    return true;
}

/// Adds the children of the last group in the result. Returns false if the time is over.
bool task_capture::add_children_of(listed_children& group) {
    group_record& record = result_.groups.back();
    if (!ends_.is_at_oldest) {
        children_of newest(*this, 0, record.children);
        group.visit_children(newest, child_cursor_);
        if (child_cursor_) {
            if (!is_full()) {
                return pause_at(group);
            }
            newest_child_end_ = std::move(child_cursor_);
            begin_oldest();
        }
    }
    if (ends_.is_at_oldest) {
        children_of oldest(*this, 0, ends_.oldest);
        group.visit_oldest(oldest, child_cursor_, *newest_child_end_);
        if (child_cursor_ && !ends_.has_gap) {
            return pause_at(group);
        }
    }
    child_cursor_.reset();
    newest_child_end_.reset();
    end_list(record.children, record.omitted);
    return true;
}

/// Makes the next step continue at this group. Returns false.
bool task_capture::pause_at(listed_children& group) {
    group_ = &group;
    if (!group_cursor_.is_placed()) {
        group_cursor_.place_after(group);
    }
    return false;
}

void task_capture::children_of::visit(promise_base& child) {
    if (level_ > 0) {
        capture_.add(child, level_, to_);
        is_full_ = capture_.left_in_tree_ == 0 && capture_.cut_;
        return;
    }
    ++capture_.visited_;
    both_ends& ends = capture_.ends_;
    if (ends.is_at_oldest && capture_.is_full()) {
        ends.has_gap = is_full_ = true;
        return;
    }
    capture_.add_root(child, to_);
    is_full_ = capture_.is_time_over() || (!ends.is_at_oldest && capture_.is_full());
}

void task_capture::add_root(promise_base& root, record_list<task_record>& to) {
    left_in_tree_ = std::min(left_ - ends_.reserved, largest_tree);
    const std::size_t before = left_in_tree_;
    add(root, 0, to);
    left_ -= before - left_in_tree_;
}

} // namespace coil::detail
