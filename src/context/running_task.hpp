#pragma once

#include <coil/core/detail/promise_base.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>

namespace coil::detail {

/// A description of the task that a thread runs, found by a signal handler of that thread.
///
/// The search begins at the coroutine that the loop has resumed last, of which only the address is
/// known: it may belong to another library, or its frame may have been freed since. So memory is
/// read by copy_memory(), and what is found is verified: an owner by the type that its virtual
/// table names, a task in a context's list by the pointer that leads back to it. The task is not
/// found if that coroutine has ended and its memory has been overwritten.
class running_task {
public:
    /// Searches; allocates nothing.
    void find(const void* resumed_frame) noexcept;
    /// Searches from the root of a tree that this thread runs. Finds nothing if it is null.
    void find_below(const promise_base* root) noexcept;
    /// Called after a search: adds the coroutines that wait for the task. Not for signal handlers.
    void find_callers() noexcept;

    static constexpr std::size_t most_awaits = 32;
    /// The functions that resume the coroutines of the chain of awaits, the outermost first.
    std::array<const void*, most_awaits> awaits{};
    std::size_t awaits_count = 0;
    /// The functions of the coroutines that wait for the task, the innermost first: the callers of
    /// a child of when_all, timeout, or a scope that is being joined.
    std::array<const void*, most_awaits> callers{};
    std::size_t callers_count = 0;
    std::array<char, 64> name{};
    std::size_t name_size = 0;
    std::source_location spawned_at;
    bool has_spawned_at = false;

private:
    void find_tree(promise_base& root) noexcept;
    void describe(promise_base& root) noexcept;
    [[nodiscard]] static promise_base* root_of(const void* frame) noexcept;
    [[nodiscard]] static bool is_verified_root(const promise_base* root) noexcept;

    promise_base* root_ = nullptr; // the root of the tree that was found
};

} // namespace coil::detail
