#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace coil::detail {

/// Threads that wait and that only other threads of this library could wake: a thread that is
/// blocked in join() or get(), or the idle threads of a pool. A list of all of them shows whether a
/// thread is left that could wake a task (deadlock.cpp).
class waiting_threads {
public:
    struct state {
        std::size_t threads = 0;
        std::uint64_t changes = 0; // grows whenever one of the waits ends
    };

    waiting_threads() = default;
    waiting_threads(const waiting_threads&) = delete;
    waiting_threads& operator=(const waiting_threads&) = delete;

    /// Called by any thread while the list is locked. nullopt unless all of the threads wait and
    /// nothing is on its way to wake one. Must not wait for a lock that is held during a fork().
    [[nodiscard]] virtual std::optional<state> now_waiting() const noexcept = 0;

    /// The threads of all objects in the list; nullopt if one of them does not wait.
    [[nodiscard]] static std::optional<state> all() noexcept;

protected:
    ~waiting_threads() = default;

    /// Any thread. If there is no memory to enter the list, the threads count as active.
    void enter_list() noexcept;
    /// No effect if it is not in the list, as in the child of a fork().
    void leave_list() noexcept;
};

} // namespace coil::detail
