#pragma once

#include <coil/core/detail/asymmetric_fence.hpp>
#include <coil/core/detail/atomics.hpp>

#include <atomic>
#include <mutex>

namespace coil::detail {

/// A futex wait: returns when the word is no longer `value`, or spuriously.
void sleep_while(std::atomic<unsigned>& word, unsigned value) noexcept;
/// Uses only the address: the word may no longer exist.
void wake_thread(std::atomic<unsigned>* word) noexcept;
void wake_all_threads(std::atomic<unsigned>* word) noexcept;

/// std_atomics, extended by the operations that a thread pool needs.
struct pool_atomics : std_atomics {
    using mutex = std::mutex;

    static void fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
    static void light_fence() noexcept { detail::light_fence(); }
    static void heavy_fence() noexcept { detail::heavy_fence(); }

    static void sleep_while(std::atomic<unsigned>& word, unsigned value) noexcept {
        detail::sleep_while(word, value);
    }
    static void wake(std::atomic<unsigned>& word) noexcept { wake_thread(&word); }
    static void wake_all(std::atomic<unsigned>& word) noexcept { wake_all_threads(&word); }
};

} // namespace coil::detail
