#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/existence.hpp>
#include <coil/core/detail/list_node.hpp>
#include <coil/core/detail/queue.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

class event_loop;

/// A loop's entry in the list of all loops of the process, which also records the loop's user. A
/// loop has one user at a time: the thread that runs it, or, while it does not run, a thread that
/// services it. A service discards what was posted to the loop, takes a snapshot of its tasks, or
/// acts for a thread that waits for one of its tasks.
///
/// free ↔ running, free ↔ serviced. A service is short; run() and the destructor wait for its end.
class listed_loop : list_node<listed_loop> {
public:
    listed_loop(const listed_loop&) = delete;
    listed_loop& operator=(const listed_loop&) = delete;

    /// Unique among all loops of the process; addresses are reused.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    /// Whether run() is active. May be called from any thread.
    [[nodiscard]] bool is_running() const noexcept {
        return use_.load(std::memory_order_relaxed) == use::running;
    }

    /// With assertions: terminates the program with a message if the loop was destroyed. This is
    /// detected only while the memory has not been reused.
    void check_exists() const noexcept {
#if COIL_ASSERTIONS
        if (existence_.has_ended()) [[unlikely]] {
            end_with_destroyed_context();
        }
#endif
    }

    /// Posts the node if a loop with this address and number exists and runs. May be called from
    /// any thread.
    [[nodiscard]] static bool post_if_running(event_loop* loop, std::uint64_t number,
                                              queue_node& node) noexcept;

protected:
    /// Calls `f` for each loop that runs, while none of them can leave the list. If `f` returns
    /// false, stops there and returns false.
    static bool for_each_running(bool (*f)(event_loop&, void*) noexcept, void* argument) noexcept;

    listed_loop(); // NOLINT(*-member-init): number_ is assigned under a lock
    ~listed_loop() { leave_list(); }

    /// Removes the loop from the list of all loops; a service in progress may continue.
    void leave_list() noexcept;

    /// Returns false if it is running. Waits for the end of a service.
    [[nodiscard]] bool begin_running() noexcept { return begin(use::running); }
    void end_running() noexcept { use_.store(use::free, std::memory_order_release); }
    /// The same for a service.
    [[nodiscard]] bool begin_service() noexcept { return begin(use::serviced); }
    void end_service() noexcept { use_.store(use::free, std::memory_order_release); }

    /// Begins a service of every loop that has no user and that `wanted` selects. Returns a list
    /// linked by next_claimed.
    [[nodiscard]] static listed_loop* claim_idle(bool (*wanted)(listed_loop&) noexcept) noexcept;

    listed_loop* next_claimed = nullptr;

private:
    friend class event_loop;
    friend list_node;
    enum class use : unsigned char { free, running, serviced };

    [[nodiscard]] bool begin(use what) noexcept;
    [[noreturn, gnu::cold]] static void end_with_destroyed_context() noexcept;

    existence existence_; // the first member is destroyed last
    std::uint64_t number_;
    std::atomic<use> use_{use::free};
};

} // namespace coil::detail
