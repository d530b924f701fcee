#pragma once

#include <cerrno>
#include <cstddef>

#include <sys/socket.h>
#include <sys/types.h>

// send(2) and recv(2), on x86-64 as inline assembly, for loops that make one system call after
// another. On processors whose return stack the kernel has to clear, the first return after a
// system call is mispredicted if it leaves a function that was called before the system call, and
// the processor stalls until the kernel's outstanding work has retired. This costs a tenth of the
// time of a send or receive on a socket, or more. A loop in which no function returns across a
// system call avoids it. Sanitizers have to see the calls, so with them the functions of libc are
// called.

#if defined(__x86_64__) && defined(__LP64__) && !defined(__SANITIZE_ADDRESS__) &&                  \
    !defined(__SANITIZE_THREAD__)
#define COIL_INLINES_CALLS 1
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#undef COIL_INLINES_CALLS
#endif
#endif
#endif

namespace coil::uring::detail {

#if defined(COIL_INLINES_CALLS)

[[gnu::always_inline]] inline ssize_t transfer_call(long number, int fd, const void* data,
                                                    std::size_t size, int flags) noexcept {
    long result = number;
    register long a4 __asm__("r10") = flags;
    register const void* a5 __asm__("r8") = nullptr; // no address
    register std::size_t a6 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(static_cast<long>(fd)), "S"(data), "d"(size), "r"(a4), "r"(a5), "r"(a6)
                     : "rcx", "r11", "memory");
    return result;
}

/// send(2): its result, or -errno.
[[gnu::always_inline]] inline ssize_t inline_send(int fd, const void* data, std::size_t size,
                                                  int flags) noexcept {
    constexpr long sendto = 44;
    return transfer_call(sendto, fd, data, size, flags);
}

/// recv(2): its result, or -errno.
[[gnu::always_inline]] inline ssize_t inline_recv(int fd, void* data, std::size_t size,
                                                  int flags) noexcept {
    constexpr long recvfrom = 45;
    return transfer_call(recvfrom, fd, data, size, flags);
}

#else

inline ssize_t inline_send(int fd, const void* data, std::size_t size, int flags) noexcept {
    const ssize_t n = ::send(fd, data, size, flags);
    return n < 0 ? -errno : n;
}

inline ssize_t inline_recv(int fd, void* data, std::size_t size, int flags) noexcept {
    const ssize_t n = ::recv(fd, data, size, flags);
    return n < 0 ? -errno : n;
}

#endif

} // namespace coil::uring::detail

#undef COIL_INLINES_CALLS
