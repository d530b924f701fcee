#pragma once

#include <coil/core/list_node.hpp>
#include <coil/core/promise.hpp>

namespace coil::detail {

/// A suspended await of a remote operation: of a task on another executor, or a function on another
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
/// or not, on the same loop. Null if unknown: for a child of a scope that is not being joined, and
/// below a coroutine of a type that is not coil's.
[[nodiscard]] inline promise_base* top_level_of(promise_base* root) noexcept {
    while (root != nullptr && root->is_root() && root->owner().bound) {
        root = root->owner().awaiting_root();
    }
    return root;
}

} // namespace coil::detail
