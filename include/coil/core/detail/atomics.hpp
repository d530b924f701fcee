#pragma once

#include <atomic>

#include <pthread.h>
#include <sched.h>

namespace coil::detail {

/// The default for the `Atomics` parameter of every synchronisation algorithm: the atomics and
/// thread functions that it uses. The tests substitute those of a model checker, which runs the
/// same code with every interleaving and with every value that a load may return (tests/model).
struct std_atomics {
    template <class T>
    using atomic = std::atomic<T>;

    /// What std::thread::id contains in libstdc++; zero means no thread. <thread> takes long to
    /// compile.
    using thread_id = ::pthread_t;
    static thread_id this_thread() noexcept { return ::pthread_self(); }
    static void yield() noexcept { ::sched_yield(); }

    /// Fences for data that is biased to one thread (asymmetric_fence.hpp). The light one is never
    /// an instruction. If the kernel refuses the heavy one after it was available when the data
    /// was biased, it waits until the owner's writes are visible.
    static bool can_bias() noexcept;
    static void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
    static void heavy_fence() noexcept;
};

} // namespace coil::detail
