#pragma once

namespace coil::detail {

/// Called between two polls of memory: leaves the core to its other hardware thread, and the bus to
/// the writer.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb"); // on most processors yield has no effect
#endif
}

} // namespace coil::detail
