#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>

namespace coil::uring {
class ring;
}

namespace coil::detail {

class event_loop;
class promise_base;
enum class wait_kind : std::uintptr_t;

/// The observers of the process: for each USDT probe the number of tools that have attached to it,
/// which the kernel writes into the program's memory, and whether a trace is being recorded. All of
/// it is one word, so that a turn of a loop pays for one load and one branch.
struct alignas(8) observers {
    std::uint16_t submit;
    std::uint16_t complete;
    std::uint16_t resume;
    std::uint16_t trace;
};
static_assert(sizeof(observers) == sizeof(std::uint64_t));

extern observers all_observers __asm__("coil_observers"); // the name in the probes' notes

[[nodiscard]] inline bool is_observed() noexcept {
    using word [[gnu::may_alias]] = std::uint64_t;
    return __atomic_load_n(reinterpret_cast<const word*>(&all_observers), __ATOMIC_RELAXED) != 0;
}
[[nodiscard]] inline bool is_tracing() noexcept {
    return __atomic_load_n(&all_observers.trace, __ATOMIC_RELAXED) != 0;
}

// The note_ functions are called only while is_tracing() or is_observed() returns true.

/// The committed entries of a ring are about to be submitted. `seen`: see for_each_ready_sqe().
void note_submissions(uring::ring& ring, std::uint32_t& seen) noexcept;
/// A task was given to the loop of this thread, or posted to the loop of another.
void note_spawn(promise_base& task) noexcept;
inline void observe_spawn(promise_base& task) noexcept {
    if (is_tracing()) [[unlikely]] {
        note_spawn(task);
    }
}
/// A coroutine has begun to wait on the loop of this thread.
void note_wait(std::coroutine_handle<> waiter, wait_kind kind) noexcept;

} // namespace coil::detail
