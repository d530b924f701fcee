#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/away_list.hpp>
#include <coil/context/detail/listed_children.hpp>
#include <coil/context/live_metrics.hpp>
#include <coil/core/promise.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace coil::detail {

class nursery;

/// The top-level tasks on one context, so that a shutdown finds every frame, and their awaits of
/// remote operations. Owner thread, except load().
///
/// A task is in one of two lists: `listed`, or during a shutdown `held_back`, while it awaits a
/// remote operation. Tasks leave by the functions of core/detail/top_level_task.hpp, which do not
/// know the list; so count() is the number of tasks inserted minus the number that left while the
/// list was counted on this thread.
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

    /// none → listed, or spawned → listed by receive().
    void add(promise_base& task) noexcept {
        COIL_ASSERT(task.link.is(task_state::none) || task.link.is(task_state::spawned));
        insert(task);
    }
    /// A task that another thread has posted, and counted as sent.
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

    /// Tasks that have ever been here.
    [[nodiscard]] std::uint64_t inserted() const noexcept { return inserted_; }
    /// Tasks that are here. Only while counted on this thread.
    [[nodiscard]] std::uint64_t count() const noexcept {
        return inserted_ - tasks_left_on_this_thread;
    }
    /// From now on, and until the next call, tasks that leave on this thread are counted for this
    /// list: called in pairs, around everything that may run or destroy coroutines.
    void toggle_counting() noexcept { std::swap(tasks_left_on_this_thread, left_); }
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
    /// Calls `f(task, node)` for each of them; `task` is the top-level task, or null if unknown.
    template <class Function>
    void visit_away(Function f) noexcept {
        for (away_node* each = away_; each != nullptr;) {
            away_node& node = *each;
            each = node.next; // a request unlinks nothing
            f(top_level_of(node.root_), node);
        }
    }
    /// Requests the destruction of what the await waits for. Returns whether the await is still
    /// away.
    static bool destroy_away(away_node& node) noexcept {
        return node.status_(node, away_node::request::destroy);
    }
    /// Calls destroy_away() for the awaits below the children of a nursery, as far as they are
    /// among the `at_most` youngest awaits that are away.
    void destroy_away_below(const nursery& parent, std::size_t at_most) noexcept;

    // ---- for a list of all tasks

    /// The newest of the tasks that are not held back, and of those that are; linked by next_task.
    [[nodiscard]] promise_base* first_listed() const noexcept { return listed_.first(); }
    [[nodiscard]] promise_base* first_held_back() const noexcept { return held_back_.first(); }
    /// The scopes and supervisors with children.
    [[nodiscard]] listed_children*& nurseries() noexcept { return nurseries_; }
    /// Calls `f(root)` with the nearest root of each await of a remote operation.
    template <class Function>
    void visit_away_roots(Function f) const {
        for (const away_node* node = away_; node != nullptr; node = node->next) {
            f(node->root_);
        }
    }

    // ---- destruction

    /// listed → ended: destroys the task's frame, or has its owner do that.
    static void destroy(promise_base& task) noexcept {
        COIL_ASSERT(task.link.is(task_state::listed));
        end_task(task);
        task.owner().abandoned(task);
    }
    /// Destroys the listed tasks that `is_due` selects. Destructors may change the list: the scan
    /// starts again after each.
    template <class Predicate>
    void destroy_if(Predicate is_due) noexcept {
        promise_base* task = listed_.first();
        while (task != nullptr) {
            if (is_due(*task)) {
                destroy(*task);
                task = listed_.first();
            } else {
                task = task->next_task;
            }
        }
    }
    /// Destroys the newest listed task.
    void destroy_newest() noexcept { destroy(*listed_.first()); }
    /// Notifies the waiters for a task's result that are themselves unwanted: there will be no
    /// result.
    void refuse_unwanted() noexcept;

    // ---- a shutdown

    /// Asks all remote operations to end. The tasks that await them are held back, and all others
    /// are listed.
    void hold_back() noexcept;
    [[nodiscard]] bool holds_back() const noexcept { return !held_back_.empty(); }
    /// Whether any task may await a remote operation, because the tree of such an await is unknown.
    [[nodiscard]] bool tree_unknown() const noexcept { return tree_unknown_; }
    /// held_back → listed → ended, for the newest task that is held back.
    void destroy_newest_held_back() noexcept;

private:
    static bool contains(const promise_base* first, const promise_base& task) noexcept {
        const promise_base* one = first;
        while (one != nullptr && one != &task) {
            one = one->next_task;
        }
        return one != nullptr;
    }
    void insert(promise_base& task) noexcept {
        ++inserted_;
        listed_.insert(task);
    }
    template <task_state To>
    static void move(promise_base& task, task_chain<To>& list) noexcept;

    task_chain<task_state::listed> listed_;
    std::uint64_t inserted_ = 0;
    away_node* away_ = nullptr;
    listed_children* nurseries_ = nullptr;
    task_chain<task_state::held_back> held_back_;
    bool tree_unknown_ = false;
    std::uint64_t received_ = 0; // of those that were sent
    counter balance_;            // count() - received_, as last published
    std::uint64_t left_ = 0;     // tasks_left_on_this_thread, while not counted there
};

} // namespace coil::detail
