#pragma once

#include "leaf_search.hpp"
#include "task_snapshot.hpp"

#include <coil/context/detail/away_list.hpp>
#include <coil/context/detail/listed_children.hpp>
#include <coil/core/detail/promise_base.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace coil::detail {

/// A position in a context's list of tasks. In the list it looks like a task without a coroutine,
/// so that tasks before and after it may leave the list. A shutdown removes it, like a task.
class task_cursor final : task_owner {
public:
    task_cursor() noexcept : task_owner({}, false) { frame_.promise.become_root(*this); }
    task_cursor(const task_cursor&) = delete;
    task_cursor& operator=(const task_cursor&) = delete;
    ~task_cursor() { leave(); }

    void place_before(promise_base& task) noexcept {
        insert_marker(frame_.promise, task);
        is_placed_ = true;
    }
    void place_behind(promise_base& task) noexcept { place_before(*task.next_task); }
    /// The cursor as a member of the list.
    [[nodiscard]] const promise_base& place() const noexcept { return frame_.promise; }
    [[nodiscard]] bool is_placed() const noexcept { return is_placed_; }
    /// Returns the task after it, or null.
    promise_base* leave() noexcept;

    [[nodiscard]] static bool is_cursor(promise_base& task) noexcept;

private:
    void finished(promise_base&) noexcept override {}
    void abandoned(promise_base&) noexcept override;
    [[nodiscard]] bool is_marker() const noexcept override { return true; }

    struct {
        const void* resume = nullptr;
        const void* destroy = nullptr;
        promise_base promise;
    } frame_;
    bool is_placed_ = false;
};

/// A position in a context's list of scopes and supervisors: a placeholder without children.
class group_cursor final : public listed_children {
public:
    ~group_cursor() { leave(); }

    void place_after(listed_children& group) noexcept { insert_after(group); }
    [[nodiscard]] bool is_placed() const noexcept { return is_linked(); }
    /// Returns the group after it, or null.
    listed_children* leave() noexcept {
        if (is_placed()) {
            unlink();
        }
        return next_in_list();
    }

    void visit_children(child_visitor&, owned<children_cursor>&) override {}
    void visit_oldest(child_visitor&, owned<children_cursor>&, const children_cursor&) override {}
    [[nodiscard]] std::size_t running_children() const noexcept override { return 0; }
    [[nodiscard]] std::size_t waiting_children() const noexcept override { return 0; }
    [[nodiscard]] promise_base* awaiting_task() const noexcept override { return nullptr; }
};

/// Takes a snapshot of a loop's tasks, in steps of limited time between which the loop continues.
/// Cursors in the loop's lists mark the position. Reads only; runs no code of the program. Used on
/// the loop's thread, or on another thread that has claimed the loop while it does not run.
///
/// Each record is consistent: all of it was true at one time. A task that is spawned after the
/// first step may be missing, and one that ends before the capture reaches it is missing.
class task_capture {
public:
    task_capture(event_loop& loop, std::size_t limit) noexcept
        : loop_(loop), limit_(limit), left_(limit) {}

    static constexpr std::chrono::nanoseconds unlimited = std::chrono::nanoseconds::max();

    /// The maximum number of coroutines and list members that a step of limited time reads, besides
    /// the rest of the last member's tree. So its length does not depend on the clock alone.
    static constexpr std::size_t most_per_step = 8192;

    /// Obtains the memory that the snapshot will probably need. Called before the first step, on
    /// the thread that waits for the snapshot: the page faults would be a large part of the steps.
    void reserve() noexcept;
    /// Continues for `time`, or a little longer. Returns whether the snapshot is complete.
    bool step(std::chrono::nanoseconds time);
    /// Takes the cursors out of the loop's lists.
    void leave() noexcept;
    /// The snapshot, once it is complete. May be called on any thread.
    [[nodiscard]] context_snapshot take();
    /// The memory of a snapshot that is not wanted. Only leave() may be called afterwards.
    [[nodiscard]] snapshot_memory discard() noexcept { return std::move(result_.memory); }
    /// How many members of lists were read, recorded or not. For tests.
    [[nodiscard]] std::size_t visited() const noexcept { return visited_; }
    /// What the last step has read, as counted for most_per_step. For tests.
    [[nodiscard]] std::size_t read_in_step() const noexcept { return read_in_step_; }

    // Claims and releases a loop that does not run, see listed_loop.
    [[nodiscard]] static bool claim(event_loop& loop) noexcept;
    static void release(event_loop& loop) noexcept;

private:
    enum class stage : std::uint8_t { begin, away, listed, held_back, groups, complete };

    /// Adds the children of an await or a scope to a record.
    class children_of final : public child_visitor {
    public:
        children_of(task_capture& capture, int level, record_list<task_record>& to) noexcept
            : capture_(capture), level_(level), to_(to) {}

        void visit(promise_base& child) override;

    private:
        task_capture& capture_;
        int level_;
        record_list<task_record>& to_;
    };

    /// The progress in the list that is being recorded. If the list has too many members, the
    /// newest are recorded until half of the limit is used, then the oldest, beginning at the end
    /// of the list. So the cost does not depend on the number of members in between.
    struct both_ends {
        std::size_t members = 0;  // the number of members at the beginning
        std::size_t reserved = 0; // for the oldest, of what is left of the limit
        bool has_begun = false;
        bool is_at_oldest = false;
        bool has_gap = false;            // between the two
        record_list<task_record> oldest; // like the others, the newest of them first
    };

    /// Deeper trees are truncated.
    static constexpr int most_levels = 64;
    static constexpr std::size_t longest_chain = 256;
    /// A tree of children of combinators is read in one step, so it is truncated.
    static constexpr std::size_t largest_tree = 4096;
    /// Every step reads the ready queue: its ring, and at most this many coroutines behind the ring
    /// (more, up to the snapshot's limit, if the time is unlimited). A ready task further behind
    /// that has no awaiter, because it has not started, is described as unknown.
    static constexpr std::size_t most_ready_behind = 2048;

    void begin();
    void index_ready(std::size_t most_behind);
    /// Returns true if the stage is done, false if the time of the step is over.
    [[nodiscard]] bool do_stage();
    [[nodiscard]] bool add_away();
    template <task_state State>
    [[nodiscard]] bool add_list(task_chain<State>& list);
    template <task_state State>
    [[nodiscard]] bool add_newest(task_chain<State>& list);
    template <task_state State>
    [[nodiscard]] bool add_oldest(task_chain<State>& list);
    [[nodiscard]] bool add_groups();
    [[nodiscard]] bool add_children_of(listed_children& group);
    [[nodiscard]] bool pause_at(listed_children& group);
    void begin_list(std::size_t members) noexcept;
    /// Switches from the newest to the oldest.
    void begin_oldest() noexcept;
    /// Adds the oldest to the newest, which are in `to`.
    void end_list(record_list<task_record>& to, omission& omitted) noexcept;
    /// Whether the limit is used up, except for the part that is reserved for the oldest.
    [[nodiscard]] bool is_full() const noexcept { return left_ == ends_.reserved; }
    void add_root(promise_base& root, record_list<task_record>& to);
    void add(promise_base& root, int level, record_list<task_record>& to);
    void add_chain(task_record& record, promise_base& root, std::size_t length);
    /// Whether the step has used its time, or has read as much as it may.
    [[nodiscard]] bool is_time_over() noexcept;
    struct found_waits;
    static void resolve(record_list<task_record>& tasks, const found_waits& found);
    /// Groups by the frames in which they are.
    using groups_in_frames = std::unordered_multimap<const void*, group_record*>;
    void find_owners();
    static void find_owners(const groups_in_frames& groups, const record_list<task_record>& tasks);

    event_loop& loop_;
    const std::size_t limit_;
    std::size_t left_;
    std::size_t left_in_tree_ = 0;
    std::size_t visited_ = 0;
    both_ends ends_;
    stage stage_ = stage::begin;
    bool cut_ = false;
    context_snapshot result_;
    struct join_record {
        const void* by; // the frame of the coroutine
        const void* group;
    };
    record_list<join_record> joins_; // in the result's memory, like away_
    record_list<const void*> away_;  // frames of roots

    // Between steps.
    away_cursor away_cursor_;
    task_cursor task_cursor_;
    task_cursor newest_end_; // behind the newest that are recorded
    group_cursor group_cursor_;
    listed_children* group_ = nullptr;    // the group at which the step ended
    owned<children_cursor> child_cursor_; // in the list of that group's children
    owned<children_cursor> newest_child_end_;
    std::size_t groups_ = 0;

    // The state of the current step.
    std::chrono::steady_clock::time_point end_;
    unsigned until_clock_ = 0;
    std::size_t read_in_step_ = 0;
    std::size_t most_in_step_ = 0;
    std::optional<leaf_search> leaves_;
    std::vector<const void*> ready_; // frames, sorted
};

} // namespace coil::detail
