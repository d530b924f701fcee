#include <coil/core/detail/asymmetric_fence.hpp>
#include <coil/core/detail/atomics.hpp>

#include <chrono>
#include <mutex>
#include <thread>

#include <linux/membarrier.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

bool register_process() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

/// Another thread may just have passed a light fence without a fence instruction. Its earlier
/// writes become visible within this time.
void wait_for_visibility() noexcept { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

/// Called if the kernel refuses membarrier(). From then on all fences are full fences, because
/// light fences can no longer rely on heavy ones.
void give_up_heavy_fences() noexcept {
    light_fences_are_free.store(false, std::memory_order_seq_cst);
    wait_for_visibility();
}

} // namespace

bool prepare_heavy_fence() noexcept {
    static std::once_flag once;
    std::call_once(once, [] { light_fences_are_free.store(register_process()); });
    return light_fences_are_free.load(std::memory_order_relaxed);
}

void heavy_fence() noexcept {
    if (light_fences_are_free.load(std::memory_order_relaxed)) [[likely]] {
        if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) [[likely]] {
            return;
        }
        give_up_heavy_fences();
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void prepare_heavy_fence_if_cheap() noexcept {
#if __has_include(<sys/single_threaded.h>)
    if (__libc_single_threaded != 0) {
        prepare_heavy_fence();
    }
#endif
}

bool std_atomics::can_bias() noexcept {
    return light_fences_are_free.load(std::memory_order_relaxed);
}

void std_atomics::heavy_fence() noexcept {
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) [[unlikely]] {
        give_up_heavy_fences(); // and nothing else is biased
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

} // namespace coil::detail
