#pragma once

#include "snapshot_memory.hpp"

#include <coil/context/detail/described_wait.hpp>
#include <coil/core/detail/task_owner.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace coil::detail {

class event_loop;

/// The wait of the innermost coroutine of a chain of awaits.
struct wait_record {
    enum class what : std::uint8_t {
        unknown,   ///< it runs, or its awaiter is not one of coil's
        ready,     ///< in the ready queue: its wait is over, or it has not started
        operation, ///< of the ring
        queued,    ///< the same, before it is submitted
        stream,    ///< the next result of a multishot operation
        sleep,
        object, ///< a mutex, a channel or the like
        join,   ///< the end of a spawned task
        child,  ///< a child_handle, or a place in a supervisor
        group,  ///< the children of a scope or supervisor
        children,
        elsewhere, ///< a task or function on another thread
    };

    what kind = what::unknown;
    waited_object object = waited_object::unknown;
    std::uint8_t opcode = 0;
    bool is_direct = false;        // the descriptor is a slot of the ring's table
    bool is_locked_shared = false; // the object is locked by one or more readers
    bool has_fill = false;         // `fill` is set: the object is a channel
    std::int32_t fd = -1;
    std::int64_t deadline_ns = none; // the end of a sleep, or of the time limit of an operation
    std::int64_t limit_ns = none; // the time limit of an operation, if it began at an unknown time
    std::int64_t begun_ns = none; // when the wait began, if a timer shows it
    channel_fill fill{};
    const void* address = nullptr; // the object or group
    const void* holder = nullptr;  // the frame of the task that has locked the object, if known

    static constexpr std::int64_t none = INT64_MAX;
    [[nodiscard]] bool has_descriptor() const noexcept { return fd >= 0 && !is_direct; }
};

struct coroutine_record {
    const void* frame;
    const void* function; // the one that resumes it
};

/// The root of a tree of awaits, the chain of awaits down to where it branches, and its branches.
struct task_record {
    const void* frame = nullptr;
    const void* leaf = nullptr; // the frame at the end of the chain
    std::string_view name;
    std::optional<std::source_location> spawned_at;
    std::int64_t deadline_ns = task_owner::no_deadline;
    std::int64_t spawned_ns = 0; // by steady_clock; only for tasks with a name; 0: unknown
    std::span<const coroutine_record> coroutines; // the root first
    wait_record wait;
    record_list<task_record> children;
};

/// The tasks that a list lacks because of the limit. All of them belong between two consecutive
/// records.
struct omission {
    std::size_t count = 0;
    std::size_t behind = 0; // the number of records before the gap
};

/// The children of a scope or supervisor.
struct group_record {
    const void* address = nullptr;
    const void* joined_by = nullptr; // the frame of the coroutine that joins it
    // The task in whose frames it is, if known: for a scope, the one that has spawned the children.
    const void* owner = nullptr;
    std::string_view owner_name;
    std::size_t waiting = 0; // children that may not start yet
    omission omitted;
    record_list<task_record> children;
};

/// An operation on a descriptor of the process.
struct descriptor_use {
    std::int32_t fd;
    std::uint8_t opcode;
};

struct context_snapshot {
    enum class how : std::uint8_t { complete, cut, no_answer };

    std::string name;
    how result = how::complete;
    std::uint64_t top_level = 0;
    std::uint64_t arriving = 0; // in the inbox
    std::int64_t now_ns = 0;
    bool is_simulated = false;    // in a world, which has its own time and descriptors
    ::pid_t thread = 0;           // the thread that runs it, or 0
    bool has_more_groups = false; // there are more groups than are recorded
    omission omitted;             // from `tasks`
    snapshot_memory memory;       // contains the lists that follow
    record_list<task_record> tasks;
    record_list<group_record> groups;
    record_list<descriptor_use> descriptors; // those that the tasks wait for
};

template <class Function>
void for_each_task(const record_list<task_record>& tasks, Function& f) {
    for (const task_record& task : tasks) {
        f(task);
        for_each_task(task.children, f);
    }
}
/// Calls `f` for all tasks of a snapshot.
template <class Function>
void for_each_task(const context_snapshot& context, Function f) {
    for_each_task(context.tasks, f);
    for (const group_record& group : context.groups) {
        for_each_task(group.children, f);
    }
}

/// Takes a snapshot of at most `limit` tasks: if there are more, of the newest and the oldest. May
/// be called from any thread. If the loop runs on another thread, that thread takes the snapshot,
/// in a small part of each turn; otherwise the calling thread takes it without interruption.
[[nodiscard]] context_snapshot take_snapshot(event_loop& loop, std::size_t limit);

[[nodiscard]] std::string to_text(std::span<const context_snapshot> contexts);
[[nodiscard]] std::string to_json(std::span<const context_snapshot> contexts);

} // namespace coil::detail
