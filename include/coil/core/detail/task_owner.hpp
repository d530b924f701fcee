#pragma once

#include <coil/core/inplace_stop_token.hpp>

#include <cstdint>
#include <exception>
#include <source_location>
#include <string_view>

namespace coil::detail {

/// The description of a task in messages. Members that are empty or null are omitted there.
struct task_label {
    std::string_view name;
    const std::source_location* spawned_at = nullptr;
    const void* function = nullptr; // of its coroutine
};

/// Reports an exception that no coroutine receives: passes it to the context's
/// on_unhandled_exception, unless it only says that a task was cancelled. Implemented in compose/.
void report_aside(std::exception_ptr error, const task_label& task = {}) noexcept;

class event_loop;
class nursery;
class promise_base;

/// The owner of a root: of a top-level task, or of a coroutine's child that is bound to it. It is
/// notified when the root ends, and destroys the frame.
class task_owner {
public:
    /// The coroutine is at its final suspension point; its result is in the promise.
    virtual void finished(promise_base& root) noexcept = 0;
    /// The coroutine will not be resumed: its context destroys it, in a shutdown or on request, or
    /// its executor has dropped it. Destroys the frame.
    virtual void abandoned(promise_base& root) noexcept = 0;
    /// For a root that an await waits for: the nearest root above that await, or null if unknown.
    /// May be called from any thread while the root exists.
    [[nodiscard]] virtual promise_base* awaiting_root() const noexcept { return nullptr; }
    /// The same, but also null if the frames above that await may be destroyed without this root.
    [[nodiscard]] virtual promise_base* owning_root() const noexcept { return awaiting_root(); }
    /// The task whose await waits for this root, or null if unknown or on another thread. Owner
    /// thread.
    [[nodiscard]] virtual promise_base* awaiting_task() const noexcept { return nullptr; }
    /// The name that spawn() was given, or empty.
    [[nodiscard]] virtual std::string_view name() const noexcept { return {}; }
    /// Where it was spawned, if it has a name or the build has assertions; otherwise null.
    [[nodiscard]] virtual const std::source_location* spawned_at() const noexcept {
        return nullptr;
    }
    /// When a task with a name was spawned, in nanoseconds of steady_clock; 0: unknown.
    [[nodiscard]] virtual std::int64_t spawned_ns() const noexcept { return 0; }
    /// The nursery of the scope or supervisor of which the root is a child; null if it is not a
    /// child or has not started. Owner thread.
    [[nodiscard]] virtual const nursery* parent_nursery() const noexcept { return nullptr; }
    /// For a root that is_remote_child: its frame must be destroyed as soon as no coroutine of its
    /// tree runs.
    [[nodiscard]] virtual bool is_kill_requested() const noexcept { return false; }
    /// For a root that is_remote_child: whether it is on a context, as far as known. May be called
    /// from any thread while the root exists.
    [[nodiscard]] virtual bool is_on_context() const noexcept { return false; }
    /// For a root that is_remote_child: it belongs to this loop from now on, on whose thread this
    /// is called; null: it leaves its current loop.
    virtual void moved_to(event_loop* /*loop*/) noexcept {}

    /// Whether there is no task: the root only marks a place in a context's list.
    [[nodiscard]] virtual bool is_marker() const noexcept { return false; }
    /// Whether the waiter for this root no longer wants its result, and waits only for its end. May
    /// be called from any thread while the root exists.
    [[nodiscard]] virtual bool is_unwanted() const noexcept { return token.stop_requested(); }
    /// The root is on a context that does not run. Waiters for its result that are themselves
    /// unwanted are notified that there will be no result.
    virtual void refuse_unwanted() noexcept {}

    static constexpr std::int64_t no_deadline = INT64_MAX;
    /// The earliest deadline that applies to the root, in nanoseconds of steady_clock. May be
    /// called from any thread while the root exists.
    [[nodiscard]] virtual std::int64_t deadline() const noexcept;

    /// The stop token of the root and of all tasks below it.
    const inplace_stop_token token;
    /// Whether a coroutine that ends without an exception may destroy itself without calling the
    /// owner: the fast path of detached tasks.
    const bool indifferent;
    /// Whether the root belongs to a coroutine of the same context, which destroys it. A bound root
    /// is in no context's list and does not move to another context.
    const bool bound;
    /// Whether a coroutine on another context waits for the end of this root, whose frame may refer
    /// to the frame of that coroutine. The root must then end before that coroutine can be
    /// destroyed.
    const bool is_remote_child;

protected:
    enum class kind : unsigned char { usual, bound, remote_child };

    constexpr task_owner(inplace_stop_token stop, bool is_indifferent,
                         bool is_bound = false) noexcept
        : task_owner(stop, is_indifferent, is_bound ? kind::bound : kind::usual) {}
    constexpr task_owner(inplace_stop_token stop, bool is_indifferent, kind k) noexcept
        : token(stop), indifferent(is_indifferent), bound(k == kind::bound),
          is_remote_child(k == kind::remote_child) {}
    ~task_owner() = default;
};

} // namespace coil::detail
