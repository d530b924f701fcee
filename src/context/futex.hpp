#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

/// futex(2) of this process: sleeps while the word has the value `seen`, perhaps less long.
inline void futex_wait(const void* word, unsigned seen) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

/// Wakes so many of those who sleep there. By address only: what was there may be gone.
inline void futex_wake(const void* word, int sleepers) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

} // namespace coil::detail
