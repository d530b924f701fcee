#pragma once

#include <coil/core/detail/list_node.hpp>
#include <coil/core/detail/promise.hpp>

namespace coil::detail {

/// A suspended await of a remote operation: a task on another executor, or a function on another
/// thread. The remote operation may refer to the frame of the await, so this frame must not be
/// destroyed before the operation has ended. A shutdown therefore asks all remote operations of the
/// loop to end, and waits for them, before it destroys the tasks that await them. Used on the
/// loop's thread only.
class away_node : list_node<away_node> {
public:
    away_node(const away_node&) = delete;
    away_node& operator=(const away_node&) = delete;

protected:
    /// The request to the remote operation: to stop, or to be destroyed where it is suspended.
    enum class request : bool { stop, destroy };
    /// Passes on the request. Returns whether the remote operation is still outstanding.
    using status = bool (*)(away_node& self, request what) noexcept;

    explicit away_node(status f) noexcept : status_(f) {}
    ~away_node() { come_back(); }

    /// `root` is the nearest root above the await, or null if unknown.
    void go_away(away_node*& list, promise_base* root) noexcept {
        root_ = root;
        visited_ = visit::none;
        push_to(list);
    }
    [[nodiscard]] bool was_visited() const noexcept { return visited_ != visit::none; }
    void come_back() noexcept {
        if (is_linked()) {
            unlink();
            if (visited_ == visit::counted) [[unlikely]] {
                visited_ = visit::done; // from here on, root_ may be destroyed
                left_while_counted();
            }
        }
    }

private:
    /// In a shutdown: whether task_list has visited the node, and whether the node is one of those
    /// that hold back a task.
    enum class visit : unsigned char { none, done, counted };

    /// Called if the frame of the await is destroyed while a shutdown waits for its operation. The
    /// await may have held back a task other than the one that is being destroyed.
    static void left_while_counted() noexcept;

    friend class away_cursor;
    friend class task_list;
    friend list_node;

    const status status_;
    promise_base* root_ = nullptr;
    visit visited_ = visit::none;
};

/// A position in the list: a placeholder node that stands for no await.
class away_cursor final : away_node {
public:
    away_cursor() noexcept : away_node([](away_node&, request) noexcept { return false; }) {}

    /// Calls `f(root)` with the nearest root of each await, beginning after the cursor if it is in
    /// the list, otherwise at `first`. If `f` returns false, leaves the cursor after that await and
    /// returns false. Returns true at the end of the list.
    template <class Function>
    bool visit(const away_node* first, Function f) {
        away_node* node = is_linked() ? next : const_cast<away_node*>(first);
        come_back();
        for (; node != nullptr; node = node->next) {
            if (!f(node->root_)) {
                insert_after(*node);
                return false;
            }
        }
        return true;
    }
    using away_node::come_back;
};

/// The top-level task that a root belongs to: the root itself, or the root that awaits it, directly
/// or indirectly, on the same loop. Null if unknown: for a child of a scope that is not being
/// joined, and below a coroutine of a type that is not coil's.
[[nodiscard]] inline promise_base* top_level_of(promise_base* root) noexcept {
    while (root != nullptr && root->is_root() && root->owner().bound) {
        root = root->owner().awaiting_root();
    }
    return root;
}

/// The top-level task whose frames own a root, directly or indirectly: destroying that task
/// destroys the root first. Null if unknown: also below a scope that is not a local variable of the
/// coroutine that joins it.
[[nodiscard]] inline promise_base* top_level_owner_of(promise_base* root) noexcept {
    while (root != nullptr && root->is_root() && root->owner().bound) {
        root = root->owner().owning_root();
    }
    return root;
}

} // namespace coil::detail
