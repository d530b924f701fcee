#pragma once

#include "running_task.hpp"

#include <coil/context/detail/live_metrics.hpp>
#include <coil/core/detail/ready_queue.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace coil::detail {

/// The state of a thread that runs a context, at the moment when a signal interrupts it.
struct stall_sample {
    static constexpr std::size_t most_stack = 96;

    /// Positions in functions, the innermost first. Return addresses are lowered by one, into the
    /// call.
    std::array<const void*, most_stack> stack{};
    std::size_t stack_size = 0;
    running_task task;
    std::uint32_t popped = 0;  // ready_queue::popped()
    std::uint64_t awaited = 0; // awaits_on_this_thread
    std::uint64_t turns = 0;   // of the context
};

/// The signal that interrupts threads, installed once in the process: the highest realtime signal
/// with its default disposition. 0 if there is none.
[[nodiscard]] int stall_signal() noexcept;

/// Called in the child of a fork(): discards the request that the parent may have had.
void forget_sample() noexcept;

/// Interrupts a thread and has it take a sample. Returns false if it has not done so in time.
/// Called by the watchdog's thread only; `ready` and `turns` belong to a context that the thread
/// runs.
[[nodiscard]] bool take_sample(::pid_t thread, const ready_queue& ready, const counter& turns,
                               stall_sample& to) noexcept;

} // namespace coil::detail
