#pragma once

#include <coil/core/detail/promise_base.hpp>
#include <coil/core/list_node.hpp>

#include <cstddef>

namespace coil::detail {

/// The children of a scope or supervisor. They are top-level tasks of a loop that cannot be found
/// by following awaits, so the object is in the loop's list while it has children. Only the loop's
/// thread may access it.
class listed_children : list_node<listed_children> {
public:
    listed_children(const listed_children&) = delete;
    listed_children& operator=(const listed_children&) = delete;

    /// Calls `visitor` for each child that has started.
    virtual void visit_children(child_visitor& visitor) const = 0;
    /// The number of children that have not been allowed to start yet.
    [[nodiscard]] virtual std::size_t waiting_children() const noexcept = 0;
    /// The task that waits for the children to end, or null.
    [[nodiscard]] virtual promise_base* awaiting_task() const noexcept = 0;
    [[nodiscard]] const listed_children* next_in_list() const noexcept { return next; }

protected:
    listed_children() noexcept = default;
    ~listed_children() = default;

    using list_node<listed_children>::is_linked;
    using list_node<listed_children>::push_to;
    using list_node<listed_children>::unlink;

private:
    friend list_node;
};

} // namespace coil::detail
