#pragma once

#include <coil/context/detail/probes.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

inline std::uint64_t usdt_argument(std::integral auto number) noexcept {
    return static_cast<std::uint64_t>(number);
}
inline std::uint64_t usdt_argument(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

} // namespace coil::detail

// Probes for bpftrace, perf and SystemTap (user statically defined tracing) without <sys/sdt.h>: a
// probe is a nop, and a note in the section .note.stapsdt says where it is, where its arguments
// are, and which 16-bit number the kernel increments while a tool is attached. Each argument is
// eight bytes in a register. On other architectures there are no probes.

#if defined(__x86_64__) || defined(__aarch64__)

#define COIL_USDT_NOTE(name, arguments)                                                            \
    "990: nop\n"                                                                                   \
    ".pushsection .note.stapsdt, \"\", \"note\"\n"                                                 \
    ".balign 4\n"                                                                                  \
    ".4byte 992f - 991f, 994f - 993f, 3\n" /* the sizes of owner and description, the type */      \
    "991: .asciz \"stapsdt\"\n"                                                                    \
    "992: .balign 4\n"                                                                             \
    "993: .8byte 990b, _.stapsdt.base, coil_observers + %c[semaphore]\n"                           \
    ".asciz \"coil\"\n"                                                                            \
    ".asciz \"" #name "\"\n"                                                                       \
    ".asciz \"" arguments "\"\n"                                                                   \
    "994: .balign 4\n"                                                                             \
    ".popsection\n"                                                                                \
    ".ifndef _.stapsdt.base\n" /* tells tools how far prelink(8) has moved the program */          \
    ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                    \
    ".weak _.stapsdt.base\n"                                                                       \
    ".hidden _.stapsdt.base\n"                                                                     \
    "_.stapsdt.base: .space 1\n"                                                                   \
    ".size _.stapsdt.base, 1\n"                                                                    \
    ".popsection\n"                                                                                \
    ".endif\n"

#define COIL_USDT2(name, a, b)                                                                     \
    __asm__ volatile(COIL_USDT_NOTE(name, "8@%[first] 8@%[second]")                                \
                     : /* nothing */                                                               \
                     : [first] "r"(::coil::detail::usdt_argument(a)),                              \
                       [second] "r"(::coil::detail::usdt_argument(b)),                             \
                       [semaphore] "i"(offsetof(::coil::detail::observers, name)))
#define COIL_USDT3(name, a, b, c)                                                                  \
    __asm__ volatile(COIL_USDT_NOTE(name, "8@%[first] 8@%[second] 8@%[third]")                     \
                     : /* nothing */                                                               \
                     : [first] "r"(::coil::detail::usdt_argument(a)),                              \
                       [second] "r"(::coil::detail::usdt_argument(b)),                             \
                       [third] "r"(::coil::detail::usdt_argument(c)),                              \
                       [semaphore] "i"(offsetof(::coil::detail::observers, name)))

#else

#define COIL_USDT2(name, a, b) static_cast<void>(0)
#define COIL_USDT3(name, a, b, c) static_cast<void>(0)

#endif
