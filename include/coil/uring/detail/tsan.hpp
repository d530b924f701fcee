#pragma once

#include <coil/uring/abi.hpp>

#include <cstdint>

// ThreadSanitizer sees neither the kernel nor the rings: data that one thread wrote before it
// posted to another thread's ring (msg_ring) would be reported as a race with the reader. These two
// functions annotate the synchronization; without ThreadSanitizer they are empty.

#if defined(__SANITIZE_THREAD__)
#define COIL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COIL_TSAN 1
#endif
#endif

#ifdef COIL_TSAN
extern "C" {
void __tsan_acquire(void*);
void __tsan_release(void*);
}
#endif

namespace coil::uring::detail::tsan {

#ifdef COIL_TSAN

// user_data need not be an address that ThreadSanitizer can follow, so it is mapped to one that is.
// A collision of two values costs a missed report at worst.
inline char channels[4096];

inline void* channel(std::uint64_t user_data) noexcept {
    return &channels[(user_data * 0x9e3779b97f4a7c15) >> 52];
}

inline void submitted(const sqe& s) noexcept {
    __tsan_release(channel(s.user_data));
    if (s.opcode == static_cast<std::uint8_t>(opcode::msg_ring)) {
        __tsan_release(channel(s.off));
    }
}

inline void completed(const cqe& c) noexcept { __tsan_acquire(channel(c.user_data)); }

#else

inline void submitted(const sqe&) noexcept {}
inline void completed(const cqe&) noexcept {}

#endif

} // namespace coil::uring::detail::tsan
