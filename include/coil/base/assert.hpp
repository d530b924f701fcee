#pragma once

// COIL_ASSERT(condition): an invariant of the library. A false condition prints the expression, the
// file and line, and the function to stderr and aborts. Enabled in debug and sanitizer builds;
// define COIL_ASSERTIONS as 1 or 0 to choose. When disabled, the condition is compiled but not
// evaluated.
//
// Misuse of coil by the program is reported in every build (end_with_misuse() and exceptions);
// COIL_ASSERT is for bugs in coil itself.

#if !defined(COIL_ASSERTIONS)
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COIL_ASSERTIONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define COIL_ASSERTIONS 1
#endif
#endif
#endif
#if !defined(COIL_ASSERTIONS)
#define COIL_ASSERTIONS 0
#endif

namespace coil::detail {

/// Prints "coil: assertion failed: EXPRESSION (FILE:LINE, FUNCTION)" on stderr, then the task that
/// runs on this thread, as end_with_misuse() does, and aborts.
[[noreturn, gnu::cold]] void assertion_failed(const char* expression, const char* file,
                                              unsigned line, const char* function) noexcept;

} // namespace coil::detail

#if COIL_ASSERTIONS
#define COIL_ASSERT(condition)                                                                     \
    (static_cast<bool>(condition)                                                                  \
         ? static_cast<void>(0)                                                                    \
         : ::coil::detail::assertion_failed(#condition, __FILE__, __LINE__,                        \
                                            static_cast<const char*>(__func__)))
#else
#define COIL_ASSERT(condition) static_cast<void>(sizeof(!(condition)))
#endif
