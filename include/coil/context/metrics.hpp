#pragma once

#include <cstdint>

namespace coil {

/// What a context has done since it was made. Counters of its thread: a consistent picture is had
/// by reading them on the context, or when it does not run.
struct context_metrics {
    std::uint64_t enters = 0;               ///< io_uring_enter system calls
    std::uint64_t submissions = 0;          ///< SQEs handed to the kernel
    std::uint64_t completions = 0;          ///< CQEs received
    std::uint64_t parks = 0;                ///< times it slept in the kernel
    std::uint64_t spins = 0;                ///< times it looked for work before sleeping
    std::uint64_t back_pressure_waits = 0;  ///< operations that waited for room in the queue
    std::uint64_t refusals = 0;             ///< enters refused for a time (EBUSY, EAGAIN)
    std::uint64_t overflows = 0;            ///< enters after which completions waited for room
    std::uint64_t cancels = 0;              ///< requests to cancel something
    std::uint64_t cancel_retries = 0;       ///< cancellations that had to be asked for again
    std::uint64_t unhandled_exceptions = 0; ///< exceptions that nobody joined for
};

} // namespace coil
