#pragma once

#include <atomic>

namespace coil::detail {

/// Asymmetric fences. Two threads that each write one word and then read the other's need a full
/// fence in between, or both may read the old value. If one side does this often and the other
/// rarely, the rare side can pay for both: heavy_fence() makes every running thread of the process
/// execute a fence (membarrier(2), Linux 4.14), and light_fence() only stops the compiler from
/// reordering. A light and a heavy fence are then ordered like two full fences; two light ones are
/// not ordered. If the system call is not available, both are full fences.

/// Must be called before the first light_fence() that pairs with a heavy_fence(). Returns whether
/// the kernel provides heavy fences.
bool prepare_heavy_fence() noexcept;
/// The same if the process has a single thread, else nothing: with several threads the kernel takes
/// 10 ms or more. Called by the first context.
void prepare_heavy_fence_if_cheap() noexcept;
void heavy_fence() noexcept;

/// Whether light fences may rely on heavy ones.
constinit inline std::atomic<bool> light_fences_are_free{false};

inline void light_fence() noexcept {
    if (light_fences_are_free.load(std::memory_order_relaxed)) [[likely]] {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
}

} // namespace coil::detail
