#include "../context/futex.hpp"

#include <coil/exec/detail/fences.hpp>

#include <cerrno>
#include <chrono>
#include <climits>
#include <mutex>
#include <thread>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

bool register_process() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

/// Called if the kernel refuses membarrier(). From then on all fences are full fences, because
/// light fences can no longer rely on heavy ones.
void give_up_heavy_fences() noexcept {
    light_fences_are_free.store(false, std::memory_order_seq_cst);
    // Another thread may just have passed a light fence without a fence instruction. Its earlier
    // writes become visible within this time.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace

void prepare_heavy_fence() noexcept {
    static std::once_flag once;
    std::call_once(once, [] { light_fences_are_free.store(register_process()); });
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

static_assert(sizeof(std::atomic<unsigned>) == sizeof(int)); // required by futex(2)

void sleep_while(std::atomic<unsigned>& word, unsigned value) noexcept { futex_wait(&word, value); }
void wake_thread(std::atomic<unsigned>* word) noexcept { futex_wake(word, 1); }
void wake_all_threads(std::atomic<unsigned>* word) noexcept { futex_wake(word, INT_MAX); }

} // namespace coil::detail
