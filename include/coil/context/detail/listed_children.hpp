#pragma once

#include <coil/base/owned.hpp>
#include <coil/core/detail/list_node.hpp>
#include <coil/core/detail/promise_base.hpp>

#include <cstddef>

namespace coil::detail {

/// A position in the list of a scope's children at which a visit continues. It is removed from the
/// list when the last child ends, or when the children are destroyed.
class children_cursor {
public:
    virtual ~children_cursor() = default;
    [[nodiscard]] virtual bool is_placed() const noexcept = 0;
};

/// The children of a scope or supervisor. They are bound roots, so they are not in the loop's list
/// of top-level tasks, and following awaits does not lead to them either. Therefore a
/// listed_children is in a list of the loop while it has children. Only the loop's thread may
/// access it.
class listed_children : list_node<listed_children> {
public:
    listed_children(const listed_children&) = delete;
    listed_children& operator=(const listed_children&) = delete;

    /// Calls `visitor` for the children that have started, newest first, until the visitor is full.
    /// If `place` is not null, begins there. Sets `place` to the child at which to continue, or to
    /// null after the last child.
    virtual void visit_children(child_visitor& visitor, owned<children_cursor>& place) = 0;
    /// The same, oldest first, and only up to `end`, the place at which visit_children() stopped.
    virtual void visit_oldest(child_visitor& visitor, owned<children_cursor>& place,
                              const children_cursor& end) = 0;
    /// The number of children that have started.
    [[nodiscard]] virtual std::size_t running_children() const noexcept = 0;
    /// The number of children that have not been allowed to start yet.
    [[nodiscard]] virtual std::size_t waiting_children() const noexcept = 0;
    /// The task that waits for the children to end, or null.
    [[nodiscard]] virtual promise_base* awaiting_task() const noexcept = 0;
    [[nodiscard]] listed_children* next_in_list() const noexcept { return next; }

protected:
    listed_children() noexcept = default;
    ~listed_children() = default;

    using list_node<listed_children>::insert_after;
    using list_node<listed_children>::is_linked;
    using list_node<listed_children>::push_to;
    using list_node<listed_children>::unlink;

private:
    friend list_node;
};

} // namespace coil::detail
