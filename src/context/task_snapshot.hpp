#pragma once

#include <coil/context/detail/described_wait.hpp>
#include <coil/core/detail/task_owner.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace coil::detail {

class event_loop;

/// What the innermost coroutine of a chain of awaits waits for.
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
    bool is_direct = false; // the descriptor is a slot of the ring's table
    bool has_limit = false; // the kernel keeps it
    std::int32_t fd = -1;
    std::int64_t deadline_ns = 0;  // of a sleep
    const void* address = nullptr; // of the object or group
    const void* holder = nullptr;  // the frame of the task that has locked the object, if known
};

struct coroutine_record {
    const void* frame;
    const void* function; // that resumes it
};

/// The root of a tree of awaits, the chain of awaits down to where it branches, and its branches.
struct task_record {
    const void* frame = nullptr;
    std::string name;
    std::optional<std::source_location> spawned_at;
    std::int64_t deadline_ns = task_owner::no_deadline;
    std::int64_t spawned_ns = 0;              // of steady_clock, of a task with a name; 0: unknown
    std::vector<coroutine_record> coroutines; // the root first
    wait_record wait;
    std::vector<task_record> children;
};

/// The children of a scope or supervisor.
struct group_record {
    const void* address = nullptr;
    const void* joined_by = nullptr; // the frame
    std::size_t waiting = 0;         // children that may not start yet
    std::vector<task_record> children;
};

struct context_snapshot {
    enum class how : std::uint8_t { complete, cut, no_answer };

    std::string name;
    how result = how::complete;
    std::uint64_t top_level = 0;
    std::uint64_t arriving = 0; // in the inbox
    std::int64_t now_ns = 0;
    bool is_simulated = false; // by a world, which has its own time and descriptors
    std::vector<task_record> tasks;
    std::vector<group_record> groups;
};

/// Takes a snapshot of at most `limit` roots. May be called from any thread. If the loop runs on
/// another thread, that thread takes the snapshot, between two coroutines; otherwise the calling
/// thread takes it.
[[nodiscard]] context_snapshot take_snapshot(event_loop& loop, std::size_t limit);

[[nodiscard]] std::string to_text(std::span<const context_snapshot> contexts);
[[nodiscard]] std::string to_json(std::span<const context_snapshot> contexts);

} // namespace coil::detail
