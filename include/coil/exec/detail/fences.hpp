#pragma once

#include <coil/core/atomics.hpp>

#include <atomic>
#include <mutex>

namespace coil::detail {

/// Two threads that each write one word and then read the other's need a full fence between, or
/// both may read what was there before. Where one side does so all the time and the other hardly
/// ever, the rare side pays for both: heavy_fence() has every running thread of the process execute
/// a fence (membarrier(2), Linux 4.14), and light_fence() only keeps the compiler from reordering.
/// Between a light and a heavy one there is then the order of two full fences; between two light
/// ones there is none. Where the system call is refused, both are full fences.

/// Before the first light_fence() that a heavy_fence() is to meet.
void prepare_heavy_fence() noexcept;
void heavy_fence() noexcept;

/// Whether heavy fences are what light ones rely on.
constinit inline std::atomic<bool> light_fences_are_free{false};

inline void light_fence() noexcept {
    if (light_fences_are_free.load(std::memory_order_relaxed)) [[likely]] {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
}

/// A futex: until the word is no longer `value`, or for no reason.
void sleep_while(std::atomic<unsigned>& word, unsigned value) noexcept;
/// By address only: the word may be gone.
void wake_sleeper(std::atomic<unsigned>* word) noexcept;
void wake_all_sleepers(std::atomic<unsigned>* word) noexcept;

/// What the parts of a pool are written over (core/atomics.hpp), in addition.
struct pool_atomics : std_atomics {
    using mutex = std::mutex;

    static void fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
    static void light_fence() noexcept { detail::light_fence(); }
    static void heavy_fence() noexcept { detail::heavy_fence(); }

    static void sleep_while(std::atomic<unsigned>& word, unsigned value) noexcept {
        detail::sleep_while(word, value);
    }
    static void wake(std::atomic<unsigned>& word) noexcept { wake_sleeper(&word); }
    static void wake_all(std::atomic<unsigned>& word) noexcept { wake_all_sleepers(&word); }
};

} // namespace coil::detail
