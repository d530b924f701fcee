#pragma once

#include <coil/core/detail/backtrace_awaiter.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coil {

/// A coroutine in a chain of awaits.
struct backtrace_entry {
    /// The demangled name; empty if the module has no symbol for it (it was stripped).
    std::string function;
    /// The program or library that contains it, and its address there: arguments of addr2line(1),
    /// which prints the line of its definition: `addr2line -Cfe MODULE OFFSET`. coil-lines does
    /// the same for text with many entries.
    std::string module;
    std::uintptr_t offset = 0;

    bool operator==(const backtrace_entry&) const = default;
};

/// A task's chain of awaits, from the current coroutine to the one that no coroutine awaits; at
/// most 1000 entries.
struct task_backtrace {
    /// The name that spawn() or co_spawn() was given; empty without one.
    std::string name;
    std::vector<backtrace_entry> entries;
};

/// One line per coroutine, the current one first: `#0 parse(buffer&) [server+0x1a2b]`.
[[nodiscard]] std::string to_string(const task_backtrace& trace);

} // namespace coil

namespace coil::this_task {

/// co_await returns the chain of awaits of the current task, without suspending: the coroutines
/// that wait for this one. A debugger does not show them, because they are not on the thread's
/// stack. The chain continues from a child of when_all, when_any, timeout, or a scope that is being
/// joined, to the coroutine that waits there; it ends at a task that another context or executor
/// waits for.
///
///     std::fputs(to_string(co_await this_task::backtrace()).c_str(), stderr);
///
/// Reads the symbols of the program from its file when it is first used, and caches them. A
/// std::stacktrace cannot hold the chain: it can only be made from the thread's stack.
inline detail::backtrace_awaiter backtrace() noexcept { return {}; }

} // namespace coil::this_task
