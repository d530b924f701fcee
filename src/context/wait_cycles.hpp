#pragma once

#include <coil/context/detail/destructor_waits.hpp>
#include <coil/context/detail/remote_child.hpp>

#include <vector>

namespace coil::detail {

/// Finds destructors that wait for each other, on any number of threads. Each waits for a task that
/// is blocked on a context on whose thread another one of these destructors waits.
///
/// The blocked tasks of all loops are the edges of a graph whose nodes are the loops: the loop of
/// each destructor that caused the request to destroy a task waits for the loop on which the task
/// is blocked. A destructor waits for all of its tasks, so every cycle is a deadlock. The graph is
/// protected by a mutex and changes only while destructors wait.
class wait_cycles {
public:
    /// Adds a task that is blocked on the loop of `at`. Returns false if there is no memory.
    [[nodiscard]] static bool add(const remote_child_owner& task,
                                  const destructor_waits& at) noexcept;
    static void remove(const remote_child_owner& task) noexcept;
    /// Records a cause that was found later: what `cause` requests cannot end before `one`. Does
    /// nothing if the causes would form a cycle.
    static void set_cause(destructor_waits::reason& one,
                          const destructor_waits::reason& cause) noexcept;

    /// Finds the cycles through a loop.
    explicit wait_cycles(const destructor_waits& loop);
    /// Whether a task that is blocked on that loop is part of a cycle.
    [[nodiscard]] bool contain(const remote_child_owner& task) const;

private:
    [[nodiscard]] bool reach(const remote_child_owner& task) const;

    std::vector<const destructor_waits*> reached_; // the loops for which the loop waits, and itself
};

} // namespace coil::detail
