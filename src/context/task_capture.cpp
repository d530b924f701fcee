#include "task_capture.hpp"

#include <coil/context/event_loop.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>

#include <algorithm>
#include <utility>

namespace coil::detail {

bool task_capture::claim(event_loop& loop) noexcept { return loop.begin_service(); }
void task_capture::release(event_loop& loop) noexcept { loop.end_service(); }

context_snapshot task_capture::take() {
    context_snapshot result;
    result.name = loop_.options_.name.empty() ? "io_context" : loop_.options_.name;
    result.is_simulated = loop_.driver() != nullptr;
    result.now_ns = loop_.ring_.is_open() ? loop_.now_ns() : 0;
    index();
    result.tasks.reserve(std::min<std::size_t>(limit_, loop_.load()));
    for (promise_base* first : {loop_.tasks_.first_listed(), loop_.tasks_.first_held_back()}) {
        add_list(first, result.tasks);
    }
    for (const listed_children* group = loop_.tasks_.nurseries(); group != nullptr && limit_ > 0;
         group = group->next_in_list()) {
        group_record& record = result.groups.emplace_back();
        record.address = group;
        record.waiting = group->waiting_children();
        if (promise_base* const by = group->awaiting_task()) {
            record.joined_by = frame_of(*by);
        }
        children_of visitor(*this, 0, record.children);
        group->visit_children(visitor);
    }
    // The list may be long, so it is not traversed only to count it.
    result.top_level = cut_ ? loop_.metrics_.tasks.get() : result.tasks.size();
    if (const std::uint64_t all = loop_.load(); !cut_ && all > result.top_level) {
        result.arriving = all - result.top_level;
    }
    result.result = cut_ ? context_snapshot::how::cut : context_snapshot::how::complete;
    return result;
}

void task_capture::index() {
    loop_.ready_.visit_next([this](std::coroutine_handle<> h) { ready_.insert(h.address()); });
    std::size_t left = limit_;
    for (const listed_children* group = loop_.tasks_.nurseries(); group != nullptr && left > 0;
         group = group->next_in_list(), --left) {
        if (const promise_base* const by = group->awaiting_task()) {
            joins_.emplace(by, group);
        }
    }
    loop_.tasks_.visit_away_roots([this](const promise_base* root) {
        if (root != nullptr && away_.size() < limit_) {
            away_.insert(root);
        }
    });
}

void task_capture::add_list(promise_base* first, std::vector<task_record>& to) {
    for (promise_base* task = first; task != nullptr; task = task->next_task) {
        if (limit_ == 0) {
            cut_ = true;
            return;
        }
        add(*task, 0, to);
    }
}

void task_capture::add(promise_base& root, int level, std::vector<task_record>& to) {
    if (limit_ == 0 || level > most_levels) {
        cut_ = true;
        return;
    }
    --limit_;
    task_record& record = to.emplace_back();
    const void* frame = frame_of(root);
    record.frame = frame;
    record.coroutines.push_back({frame, resume_function(frame)});
    const task_owner& owner = root.owner();
    record.name = owner.name();
    record.deadline_ns = owner.deadline();
    record.spawned_ns = owner.spawned_ns();
    if (const std::source_location* const where = owner.spawned_at()) {
        record.spawned_at = *where;
    }
    promise_base* leaf = &root;
    while (leaf->nested_below() == nullptr && leaf->task_below() != nullptr) {
        leaf = leaf->task_below();
        frame = frame_of(*leaf);
        if (record.coroutines.size() < longest_chain) {
            record.coroutines.push_back({frame, resume_function(frame)});
        }
    }
    if (nested_await* const nested = leaf->nested_below()) {
        record.wait.kind = wait_record::what::children;
        std::vector<task_record> children;
        children_of visitor(*this, level + 1, children);
        nested->visit_below(visitor);
        record.children = std::move(children);
    }
    describe_leaf(*leaf, frame, root, record.wait);
}

void task_capture::describe_leaf(promise_base& leaf, const void* frame, promise_base& root,
                                 wait_record& wait) {
    using what = wait_record::what;
    if (ready_.contains(frame)) {
        wait.kind = what::ready;
    } else if (const auto joined = joins_.find(&leaf); joined != joins_.end()) {
        wait.kind = what::group;
        wait.address = joined->second;
    } else if (wait.kind == what::unknown) {
        wait = leaves_.find(frame);
        if (wait.kind == what::unknown && away_.contains(&root)) {
            wait.kind = what::elsewhere;
        }
    }
}

} // namespace coil::detail
