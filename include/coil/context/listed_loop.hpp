#pragma once

#include <coil/core/list_node.hpp>
#include <coil/core/queue.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

class event_loop;

/// The part of a loop by which all loops of the process are found, and which says who uses it. One
/// thread at a time does: the one that runs it, or, while it does not run, a visitor: whoever
/// discards what was posted to it, or a shutdown elsewhere that waits for a task which lies there.
///
/// free ↔ running, free ↔ visited. A visit is short; run() and the destructor wait for its end.
class listed_loop : list_node<listed_loop> {
public:
    listed_loop(const listed_loop&) = delete;
    listed_loop& operator=(const listed_loop&) = delete;

    /// Of all loops that there ever were; addresses come back.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    /// Any thread: whether run() is under way.
    [[nodiscard]] bool is_running() const noexcept {
        return use_.load(std::memory_order_relaxed) == use::running;
    }

    /// Any thread: posts the node if a loop with this address and number is there and runs.
    [[nodiscard]] static bool post_if_running(event_loop* loop, std::uint64_t number,
                                              queue_node& node) noexcept;

protected:
    listed_loop(); // NOLINT(*-member-init): number_ is given under a lock
    ~listed_loop() { leave_list(); }

    /// From now on nobody finds it; who is visiting it may still do so.
    void leave_list() noexcept;

    /// False when it is running. Waits for a visitor to leave.
    [[nodiscard]] bool begin_running() noexcept { return begin(use::running); }
    void end_running() noexcept { use_.store(use::free, std::memory_order_release); }
    /// The same for a visitor.
    [[nodiscard]] bool begin_visit() noexcept { return begin(use::visited); }
    void end_visit() noexcept { use_.store(use::free, std::memory_order_release); }

    /// Every loop that nobody uses and that `wanted` asks for is visited, and hangs in the list
    /// that this returns, by next_visited.
    [[nodiscard]] static listed_loop* visit_all(bool (*wanted)(listed_loop&) noexcept) noexcept;

    listed_loop* next_visited = nullptr;

private:
    friend class event_loop;
    friend list_node;
    enum class use : unsigned char { free, running, visited };

    [[nodiscard]] bool begin(use what) noexcept;

    std::uint64_t number_;
    std::atomic<use> use_{use::free};
};

} // namespace coil::detail
