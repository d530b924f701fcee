#pragma once

#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

/// futex(2) of this process: sleeps while the word has the value `seen`. May return early.
inline void futex_wait(const void* word, unsigned seen) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

/// The same for at most `limit`.
inline void futex_wait_for(const void* word, unsigned seen, const std::timespec& limit) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
}

/// Wakes at most `sleepers` threads that sleep on the word. Uses its address only: the object may
/// have been destroyed.
inline void futex_wake(const void* word, int sleepers) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

} // namespace coil::detail
