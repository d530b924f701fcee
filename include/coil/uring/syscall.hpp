#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) && !(defined(__aarch64__) && defined(__LP64__))
#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>
#endif

// io_uring_enter(2) as inline assembly. On processors whose return stack buffer the kernel has to
// clear, the first return instruction after a system call is mispredicted, and stalls until the
// kernel's outstanding work retires: a quarter of a short call's time. With an inlined system call
// no return instruction follows it.

namespace coil::uring::detail {

/// A process-wide unique number of each thread, never reused; 0 until the thread has requested it
/// (number_this_thread). It identifies the thread that registered a ring. A thread id or the
/// address of its storage would not do: both are reused, and an index registered by a dead thread
/// may then name another ring in the thread that reuses them.
inline constinit thread_local std::uint64_t thread_number = 0;

std::uint64_t number_this_thread() noexcept;

/// io_uring_enter(2): its result, or -errno.
[[gnu::always_inline]] inline int sys_enter(int ring, unsigned to_submit, unsigned min_complete,
                                            unsigned flags, const void* arg,
                                            std::size_t arg_size) noexcept {
#if defined(__x86_64__)
    long result = 426;
    register long a4 __asm__("r10") = static_cast<long>(flags);
    register const void* a5 __asm__("r8") = arg;
    register std::size_t a6 __asm__("r9") = arg_size;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(static_cast<long>(ring)), "S"(static_cast<long>(to_submit)),
                       "d"(static_cast<long>(min_complete)), "r"(a4), "r"(a5), "r"(a6)
                     : "rcx", "r11", "memory");
    return static_cast<int>(result);
#elif defined(__aarch64__) && defined(__LP64__)
    register long x8 __asm__("x8") = 426;
    register long x0 __asm__("x0") = ring;
    register long x1 __asm__("x1") = static_cast<long>(to_submit);
    register long x2 __asm__("x2") = static_cast<long>(min_complete);
    register long x3 __asm__("x3") = static_cast<long>(flags);
    register const void* x4 __asm__("x4") = arg;
    register std::size_t x5 __asm__("x5") = arg_size;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return static_cast<int>(x0);
#else
    const long result =
        ::syscall(SYS_io_uring_enter, ring, to_submit, min_complete, flags, arg, arg_size);
    return result < 0 ? -errno : static_cast<int>(result);
#endif
}

} // namespace coil::uring::detail
