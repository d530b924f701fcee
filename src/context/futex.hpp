#pragma once

#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

/// futex(2) of this process: sleeps while the word has the value `seen`, at most for `limit`, if it
/// is given. May return early.
inline void futex_wait(const void* word, unsigned seen,
                       const std::timespec* limit = nullptr) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, limit, nullptr, 0);
}

/// Wakes at most `sleepers` threads that sleep on the word. Uses its address only: the object may
/// have been destroyed.
inline void futex_wake(const void* word, int sleepers) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

} // namespace coil::detail
