#pragma once

namespace coil::detail {

/// A moment for the other threads of this core, and for the bus, between two looks.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb"); // yield does nothing on most
#endif
}

} // namespace coil::detail
