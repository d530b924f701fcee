#include "task_capture.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/frame_sizes.hpp>
#include <coil/core/detail/top_level_task.hpp>

#include <algorithm>
#include <new>
#include <unordered_set>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

constexpr unsigned tasks_per_clock = 16;

} // namespace

// ---- places in lists

promise_base* task_cursor::leave() noexcept {
    if (!std::exchange(is_placed_, false)) {
        return nullptr;
    }
    promise_base* const next = next_listed(frame_.promise);
    unlink_task(frame_.promise);
    frame_.promise.link = task_link(task_state::none);
    return next;
}

bool task_cursor::is_cursor(promise_base& task) noexcept { return task.owner().is_marker(); }

/// A shutdown removes the cursor like a task, and it was counted as one.
void task_cursor::abandoned(promise_base&) noexcept {
    --tasks_left_on_this_thread;
    frame_.promise.link = task_link(task_state::none);
    is_placed_ = false;
}

// ---- a step

bool task_capture::claim(event_loop& loop) noexcept { return loop.begin_service(); }
void task_capture::release(event_loop& loop) noexcept { loop.end_service(); }

void task_capture::reserve() noexcept {
    constexpr std::size_t usual_bytes = // with a short chain of awaits, and a name
        sizeof(task_record) + sizeof(void*) + 2 * sizeof(coroutine_record) + 16;
    result_.memory.reserve(std::min<std::size_t>(loop_.load(), limit_) * usual_bytes);
}

bool task_capture::step(std::chrono::nanoseconds time) {
    if (loop_.is_ending() && stage_ != stage::begin) {
        // The shutdown destroys tasks and rearranges the lists, so start over with what is left.
        leave();
        stage_ = stage::begin;
    }
    const bool unlimited_time = time == unlimited || loop_.is_ending();
    const auto now = std::chrono::steady_clock::now();
    end_ = unlimited_time ? std::chrono::steady_clock::time_point::max() : now + time;
    until_clock_ = tasks_per_clock;
    read_in_step_ = 0;
    most_in_step_ = unlimited_time ? SIZE_MAX : most_per_step;
    leaves_.emplace(loop_);
    index_ready(unlimited_time ? std::max(limit_, most_ready_behind) : most_ready_behind);
    while (stage_ != stage::complete && do_stage()) {
        stage_ = static_cast<stage>(static_cast<std::uint8_t>(stage_) + 1);
    }
    leaves_.reset();
    return stage_ == stage::complete;
}

void task_capture::leave() noexcept {
    away_cursor_.come_back();
    task_cursor_.leave();
    newest_end_.leave();
    group_cursor_.leave();
    child_cursor_.reset();
    newest_child_end_.reset();
    group_ = nullptr;
}

bool task_capture::is_time_over() noexcept {
    if (++read_in_step_ > most_in_step_) {
        return true;
    }
    if (--until_clock_ > 0) {
        return false;
    }
    until_clock_ = tasks_per_clock;
    return std::chrono::steady_clock::now() >= end_;
}

void task_capture::begin() {
    joins_ = {};
    away_ = {};
    left_ = limit_;
    groups_ = 0;
    cut_ = false;
    ends_ = {};
    snapshot_memory memory = std::move(result_.memory); // what is reserved, or left of it
    result_ = {};
    result_.memory = std::move(memory);
    result_.name = loop_.options_.name.empty() ? "io_context" : loop_.options_.name;
    result_.is_simulated = loop_.driver() != nullptr;
    result_.thread =
        loop_.on_owner_thread() ? static_cast<::pid_t>(::syscall(SYS_gettid)) : ::pid_t{0};
    result_.now_ns = loop_.ring_.is_open() ? loop_.now_ns() : 0;
    const std::uint64_t all = loop_.load();
    const std::uint64_t here = loop_.tasks_.count_for(loop_.on_owner_thread());
    result_.top_level = here;
    result_.arriving = all > here ? all - here : 0;
}

void task_capture::index_ready(std::size_t most_behind) {
    ready_.clear();
    loop_.ready_.visit([this](std::coroutine_handle<> h) { ready_.push_back(h.address()); },
                       most_behind);
    std::sort(ready_.begin(), ready_.end());
}

// ---- a task

void task_capture::add(promise_base& root, int level, record_list<task_record>& to) {
    if (left_in_tree_ == 0 || level > most_levels) {
        cut_ = true;
        return;
    }
    --left_in_tree_;
    const bool is_in_front = level == 0 && ends_.is_at_oldest;
    task_record& record = is_in_front ? to.add_in_front(result_.memory) : to.add(result_.memory);
    const void* frame = frame_of(root);
    record.frame = frame;
    const task_owner& owner = root.owner();
    record.name = result_.memory.copy(owner.name());
    record.deadline_ns = owner.deadline();
    record.spawned_ns = owner.spawned_ns();
    if (const std::source_location* const where = owner.spawned_at()) {
        record.spawned_at = *where;
    }
    promise_base* leaf = &root;
    std::size_t length = 1;
    while (leaf->nested_below() == nullptr && leaf->task_below() != nullptr) {
        leaf = leaf->task_below();
        ++length;
    }
    read_in_step_ += length;
    add_chain(record, root, std::min(length, longest_chain));
    frame = frame_of(*leaf);
    record.leaf = frame;
    nested_await* const nested = leaf->nested_below();
    if (nested != nullptr) {
        record.wait.kind = wait_record::what::children;
        children_of visitor(*this, level + 1, record.children);
        nested->visit_below(visitor);
    }
    if (std::binary_search(ready_.begin(), ready_.end(), frame)) {
        record.wait.kind = wait_record::what::ready;
    } else if (nested == nullptr) {
        record.wait = leaves_->find(frame);
        if (record.wait.has_descriptor() && !result_.is_simulated) {
            result_.descriptors.add(result_.memory) = {record.wait.fd, record.wait.opcode};
        }
    }
}

/// Adds the first coroutines of a chain of awaits.
void task_capture::add_chain(task_record& record, promise_base& root, std::size_t length) {
    auto* const chain =
        static_cast<coroutine_record*>(result_.memory.allocate(length * sizeof(coroutine_record)));
    promise_base* one = &root;
    for (std::size_t i = 0; i < length; ++i, one = one->task_below()) {
        const void* const frame = frame_of(*one);
        new (chain + i) coroutine_record{frame, resume_function(frame)};
    }
    record.coroutines = {chain, length};
}

// ---- the result

/// The waits that were found in lists other than those of the tasks.
struct task_capture::found_waits {
    std::unordered_map<const void*, const void*> joins;
    std::unordered_set<const void*> away;
};

context_snapshot task_capture::take() {
    found_waits found;
    for (const join_record& join : joins_) {
        found.joins.emplace(join.by, join.group);
    }
    for (const void* const frame : away_) {
        found.away.insert(frame);
    }
    resolve(result_.tasks, found);
    for (group_record& group : result_.groups) {
        resolve(group.children, found);
    }
    find_owners();
    result_.result = cut_ ? context_snapshot::how::cut : context_snapshot::how::complete;
    return std::move(result_);
}

/// Finds, for each scope, the task in one of whose frames it lies.
void task_capture::find_owners() {
    groups_in_frames groups;
    for (group_record& group : result_.groups) {
        if (const void* const frame = frame_around(group.address)) {
            groups.emplace(frame, &group);
        }
    }
    if (!groups.empty()) {
        find_owners(groups, result_.tasks);
        for (const group_record& group : result_.groups) {
            find_owners(groups, group.children);
        }
    }
}

void task_capture::find_owners(const groups_in_frames& groups,
                               const record_list<task_record>& tasks) {
    for (const task_record& task : tasks) {
        for (const auto& coroutine : task.coroutines) {
            const auto [begin, end] = groups.equal_range(coroutine.frame);
            for (auto inside = begin; inside != end; ++inside) {
                inside->second->owner = task.frame;
                inside->second->owner_name = task.name;
            }
        }
        find_owners(groups, task.children);
    }
}

/// Completes the records whose coroutines wait for what was found in other lists.
void task_capture::resolve(record_list<task_record>& tasks, const found_waits& found) {
    using what = wait_record::what;
    for (task_record& task : tasks) {
        what& kind = task.wait.kind;
        if (kind == what::unknown || kind == what::children) {
            if (const auto joined = found.joins.find(task.leaf); joined != found.joins.end()) {
                kind = what::group;
                task.wait.address = joined->second;
            } else if (kind == what::unknown && found.away.contains(task.frame)) {
                kind = what::elsewhere;
            }
        }
        resolve(task.children, found);
    }
}

} // namespace coil::detail
