#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/exchange.hpp>
#include <coil/context/detail/away_list.hpp>
#include <coil/context/detail/listed_children.hpp>
#include <coil/context/detail/live_metrics.hpp>
#include <coil/core/detail/promise.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::detail {

class nursery;

/// Lists the top-level tasks on one context, so that a shutdown finds every frame, and their awaits
/// of remote operations. Owner thread, except load().
///
/// A task is in one of two lists: `listed`, or during a shutdown `held_back`, while it awaits a
/// remote operation. Tasks leave through the functions of core/detail/top_level_task.hpp, which do
/// not know the list; so count() is the number of tasks inserted minus the number that left while
/// the list was counted on this thread.
class task_list {
public:
    task_list() noexcept = default;
    task_list(const task_list&) = delete;
    task_list& operator=(const task_list&) = delete;

    /// Whether no task is listed; some may be held back.
    [[nodiscard]] bool empty() const noexcept { return listed_.empty(); }
    [[nodiscard]] bool has(const promise_base& task) const noexcept {
        return contains(listed_.first(), task) || contains(held_back_.first(), task);
    }

    // ---- arrivals

    /// none → listed
    void add(promise_base& task) noexcept {
        COIL_ASSERT(task.link.is(task_state::none) || task.link.is(task_state::spawned));
        insert(task);
    }
    /// spawned → listed, for a task that another thread has posted and counted as sent.
    void receive(promise_base& task) noexcept {
        COIL_ASSERT(task.link.is(task_state::spawned));
        ++received_;
        insert(task);
    }
    /// moving, unowned → listed. The caller tells the owner of a remote child.
    void adopt(promise_base& task) noexcept {
        COIL_ASSERT(task.link.is(task_state::moving) || task.link.is(task_state::unowned));
        insert(task);
    }

    /// Called before a task leaves.
    static void tell_that_it_leaves(promise_base& task) noexcept {
        if (task.owner().is_remote_child && !is_unowned(task)) [[unlikely]] {
            task.owner().moved_to(nullptr);
        }
    }

    // ---- counts

    /// The number of tasks that were ever added to the list.
    [[nodiscard]] std::uint64_t inserted() const noexcept { return inserted_; }
    /// The number of tasks in the list. May be called only while they are counted on this thread.
    [[nodiscard]] std::uint64_t count() const noexcept {
        return inserted_ - tasks_left_on_this_thread;
    }
    /// The same on any thread while the loop does not change. `counted`: whether the list is
    /// counted on this thread.
    [[nodiscard]] std::uint64_t count_for(bool counted) const noexcept {
        return counted ? count() : inserted_ - left_;
    }
    /// From now on, and until the next call, tasks that leave on this thread are counted for this
    /// list: called in pairs, around everything that may run or destroy coroutines.
    void toggle_counting() noexcept { coil::detail::swap_values(tasks_left_on_this_thread, left_); }
    /// For load() on other threads.
    void publish() noexcept { balance_.set(count() - received_); }
    /// The number of tasks that are here or in the inbox, if `sent` tasks were posted in all. May
    /// be called on any thread; `counted` says whether the list is counted on this one. On other
    /// threads the number is as old as the last publish().
    [[nodiscard]] std::uint64_t load(std::uint64_t sent, bool counted) const noexcept {
        const std::uint64_t balance = counted ? count() - received_ : balance_.get();
        // The two values are read without an order, so `sent` may lack tasks that were received.
        const auto load = static_cast<std::int64_t>(balance + sent);
        return load > 0 ? static_cast<std::uint64_t>(load) : 0;
    }

    // ---- remote operations

    /// The awaits of remote operations by this context's tasks.
    [[nodiscard]] away_node*& away() noexcept { return away_; }
    /// Calls `f(task, node)` for each of them; `task` is the top-level task that owns the await
    /// (not one that only waits for its end), or null if unknown.
    template <class Function>
    void visit_away(Function f) noexcept {
        for (away_node* each = away_; each != nullptr;) {
            away_node& node = *each;
            each = node.next; // a request does not unlink nodes
            f(top_level_owner_of(node.root_), node);
        }
    }
    /// Requests the destruction of what the await waits for. Returns whether the await is still
    /// outstanding.
    static bool destroy_away(away_node& node) noexcept {
        return node.status_(node, away_node::request::destroy);
    }
    /// Calls destroy_away() for the awaits below the children of a nursery, as far as they are
    /// among the `at_most` youngest outstanding awaits.
    void destroy_away_below(const nursery& parent, std::size_t at_most) noexcept;

    // ---- for a list of all tasks

    /// The tasks that are not held back, and those that are.
    [[nodiscard]] task_chain<task_state::listed>& listed() noexcept { return listed_; }
    [[nodiscard]] task_chain<task_state::held_back>& held_back() noexcept { return held_back_; }
    /// The scopes and supervisors with children.
    [[nodiscard]] listed_children*& nurseries() noexcept { return nurseries_; }

    // ---- destruction

    /// listed → ended: destroys the task's frame, or has its owner do that.
    static void destroy(promise_base& task) noexcept {
        COIL_ASSERT(task.link.is(task_state::listed));
        end_task(task);
        task.owner().abandoned(task);
    }
    /// The newest listed task that `is_due` selects, or null.
    template <class Predicate>
    [[nodiscard]] promise_base* newest(Predicate is_due) const noexcept {
        promise_base* task = listed_.first();
        while (task != nullptr && !is_due(*task)) {
            task = next_listed(*task);
        }
        return task;
    }
    /// Destroys the listed tasks that `is_due` selects. Destructors may change the list: the search
    /// starts again after each.
    template <class Predicate>
    void destroy_if(Predicate is_due) noexcept {
        while (promise_base* const task = newest(is_due)) {
            destroy(*task);
        }
    }
    /// Destroys the newest listed task.
    void destroy_newest() noexcept { destroy(*listed_.first()); }
    /// Notifies waiters for the results of the tasks that there will be no result, if these waiters
    /// are themselves unwanted.
    void refuse_unwanted() noexcept;

    // ---- a shutdown

    /// Asks all remote operations to end. Afterwards a task that owns the await of an outstanding
    /// remote operation is held back; all others are listed. If the owner of such an await is
    /// unknown, all tasks but the remote children are held back. Visits all awaits.
    void hold_back() noexcept;
    [[nodiscard]] bool holds_back() const noexcept { return !held_back_.empty(); }
    /// Whether there is an await whose owner only a search of the frames may find.
    [[nodiscard]] bool has_unknown_owners() const noexcept;
    /// A shutdown begins: nothing is known about the awaits.
    void forget_holders() noexcept { all_holders_known_ = false; }
    /// Whether hold_back() must be called before a task is destroyed. Otherwise await_ends() has
    /// kept the lists up to date since the last call, except for what may_hold_back_less() reports.
    [[nodiscard]] bool must_hold_back() const noexcept {
        return !all_holders_known_ || (away_ != nullptr && !away_->was_visited());
    }
    /// Whether another hold_back() may find a task that is no longer held back, or has to pass on a
    /// request to destroy a task. It need not be called immediately.
    [[nodiscard]] bool may_hold_back_less() const noexcept { return may_hold_back_less_; }
    void set_may_hold_back_less() noexcept { may_hold_back_less_ = true; }
    /// The remote operation of an await has ended, and its coroutine is queued here. A task that is
    /// held back by no other await is listed again. So a shutdown need not visit all awaits
    /// whenever one of them ends.
    void await_ends(away_node& node) noexcept;
    /// The destruction of a task was requested. The request must be passed on to what it awaits.
    void kill_requested(promise_base& task) noexcept;
    /// Whether any task may await a remote operation, because the tree of such an await is unknown.
    [[nodiscard]] bool tree_unknown() const noexcept { return tree_unknown_; }
    /// held_back → listed → ended, for the newest task that is held back.
    void destroy_newest_held_back() noexcept;

private:
    static bool contains(const promise_base* first, const promise_base& task) noexcept {
        const promise_base* one = first;
        while (one != nullptr && one != &task) {
            one = next_listed(*one);
        }
        return one != nullptr;
    }
    void insert(promise_base& task) noexcept {
        ++inserted_;
        listed_.insert(task);
    }
    template <task_state To>
    static void move(promise_base& task, task_chain<To>& list) noexcept;
    void hold_while_away(promise_base& task, away_node& node, away_node::request what) noexcept;
    [[nodiscard]] bool hold_known_owners() noexcept;
    [[nodiscard]] bool hold_found_owners() noexcept;

    task_chain<task_state::listed> listed_;
    std::uint64_t inserted_ = 0;
    away_node* away_ = nullptr;
    listed_children* nurseries_ = nullptr;
    task_chain<task_state::held_back> held_back_;
    bool tree_unknown_ = false;
    bool all_holders_known_ = false; // after hold_back(): await_ends() may list a task again
    bool may_hold_back_less_ = false;
    std::uint64_t received_ = 0; // of those that were sent
    counter balance_;            // count() - received_, as last published
    std::uint64_t left_ = 0;     // tasks_left_on_this_thread, while not counted there
};

} // namespace coil::detail
