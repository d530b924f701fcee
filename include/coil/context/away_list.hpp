#pragma once

#include <coil/core/list_node.hpp>
#include <coil/core/promise.hpp>

namespace coil::detail {

/// A suspended await of one loop that something elsewhere will end: a task on another executor, a
/// function on another thread. Its frame must not be destroyed before, since what is elsewhere may
/// refer to it; a shutdown asks all of them to end, and waits for the answers, before it destroys
/// the tasks that they belong to. All of it happens on the loop's thread.
class away_node : list_node<away_node> {
public:
    away_node(const away_node&) = delete;
    away_node& operator=(const away_node&) = delete;

protected:
    /// What is asked of what is elsewhere: to end, or to be destroyed where it stands.
    enum class request : bool { stop, destroy };
    /// Whether what it waits for has not come back after that.
    using status = bool (*)(away_node& self, request what) noexcept;

    explicit away_node(status f) noexcept : status_(f) {}
    ~away_node() { come_back(); }

    /// `root` is the nearest root above the await, or null when that is not known.
    void go_away(away_node*& list, promise_base* root) noexcept {
        root_ = root;
        push_to(list);
    }
    void come_back() noexcept {
        if (is_linked()) {
            unlink();
        }
    }

private:
    friend class task_list;
    friend list_node;

    const status status_;
    promise_base* root_ = nullptr;
};

/// The top-level task that a root belongs to: the root itself, or the one that awaits it, directly
/// or not, on the same loop. Null when that is not known: a child of a scope that is not being
/// joined, or what is below a coroutine of another kind.
[[nodiscard]] inline promise_base* top_level_of(promise_base* root) noexcept {
    while (root != nullptr && root->is_root() && root->owner().bound) {
        root = root->owner().awaiting_root();
    }
    return root;
}

} // namespace coil::detail
