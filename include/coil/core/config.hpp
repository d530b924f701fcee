#pragma once

// Properties of the compiler that the rest of coil depends on.

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13 && !defined(COIL_ALLOW_GCC12)
#error                                                                                             \
    "coil: GCC 12 and older silently miscompile coroutines (temporaries in a co_await expression are \
destroyed twice). Use clang 17+ or GCC 14+, or define COIL_ALLOW_GCC12 if you accept wrong code."
#endif

#if defined(__clang__) && __clang_major__ < 17
#error "coil: this version of Clang lacks parts of C++20. Use Clang 17+ or GCC 14+."
#endif

#if !defined(__cpp_impl_coroutine) || __cplusplus < 202002L
#error "coil: C++20 coroutines are needed; compile with -std=c++20 or newer."
#endif

// Clang compiles a coroutine_handle returned from await_suspend as a tail call at every
// optimisation level. GCC does so only at -O2 without sanitizers, so with GCC the driver loop of
// core/detail/transfer.hpp always resumes the next coroutine instead (guarantee G10).
#if defined(__clang__)
#define COIL_SYMMETRIC_TRANSFER 1
#else
#define COIL_SYMMETRIC_TRANSFER 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COIL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define COIL_SANITIZED 1
#endif
#endif
#if !defined(COIL_SANITIZED)
#define COIL_SANITIZED 0
#endif

// Define COIL_CHECK_LIFETIMES (clang only) to get a warning for a coroutine that outlives what it
// refers to: a reference or string_view parameter bound to a temporary, the captures of a lambda,
// the object of a member function. Each function that returns a coroutine type but is not a
// coroutine must then be marked COIL_CORO_WRAPPER. Some templates of the standard library are such
// functions. This header includes their headers with that mark, so it must be the first header that
// includes them:
//
//     clang++ -DCOIL_CHECK_LIFETIMES -include coil/core/config.hpp ...
//
// - COIL_CORO_TYPE: attributes of a coroutine's return type.
// - COIL_CORO_WRAPPER: attribute of a plain function that returns one; its reference arguments are
//   checked like those of the coroutine that it calls.
// - COIL_CORO_COPIES: the same for a plain function whose result refers to none of its arguments.
// - COIL_CAPTURED(by): attribute of a parameter of coroutine type that continues to run after the
//   call, in `this` or, if by is `global`, anywhere.
#if defined(COIL_CHECK_LIFETIMES) && defined(__clang__)
#define COIL_CORO_TYPE [[clang::coro_return_type]] [[clang::coro_lifetimebound]]
#define COIL_CORO_WRAPPER [[clang::coro_wrapper]]
#define COIL_CORO_COPIES [[clang::coro_wrapper]] [[clang::coro_disable_lifetimebound]]
#if __has_cpp_attribute(clang::lifetime_capture_by)
#define COIL_CAPTURED(by) [[clang::lifetime_capture_by(by)]]
#endif
#pragma clang attribute push([[clang::coro_wrapper]], apply_to = function)
#include <any>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>
#include <variant>
#pragma clang attribute pop
#else
#define COIL_CORO_TYPE
#define COIL_CORO_WRAPPER
#define COIL_CORO_COPIES
#endif
#if !defined(COIL_CAPTURED)
#define COIL_CAPTURED(by)
#endif

// Attribute of a coroutine's return type: the frame may be placed inside the frame that awaits it
// immediately.
#if defined(__clang__) && defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::coro_await_elidable)
#define COIL_AWAIT_ELIDABLE [[clang::coro_await_elidable]]
#endif
#if __has_cpp_attribute(clang::lifetimebound)
#define COIL_LIFETIMEBOUND [[clang::lifetimebound]]
#endif
#endif
// Placed after a function's parameters: reports calls for which the condition is true, as far as
// the compiler knows the arguments. The sentence is the message, at the line of the call, and no
// list of other candidates follows it. (The macros do not use each other, because the compiler
// would print each level of expansion.)
// - COIL_WARN_IF: a warning, for code that is legal but rarely intended.
// - COIL_ERROR_IF: an error, only with clang. For other compilers the body holds a static_assert.
#if defined(__clang__)
#define COIL_WARN_IF(condition, sentence)                                                          \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"")          \
        __attribute__((diagnose_if(condition, sentence, "warning"))) _Pragma(                      \
            "clang diagnostic pop")
#define COIL_ERROR_IF(condition, sentence)                                                         \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"")          \
        __attribute__((diagnose_if(condition, sentence, "error"))) _Pragma("clang diagnostic pop")
#else
#define COIL_WARN_IF(condition, sentence)
#define COIL_ERROR_IF(condition, sentence)
#endif

// Placed after a function's parameters instead of a body: a call of the function does not compile,
// and the compiler prints the sentence. Its return type must not be deduced.
#if defined(__clang__)
#define COIL_DELETE(sentence)                                                                      \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"")          \
        __attribute__((diagnose_if(true, sentence, "error"))) _Pragma("clang diagnostic pop")
#else
#define COIL_DELETE(sentence) __attribute__((unavailable(sentence)))
#endif

// The same for a conversion and for a copy constructor. Type traits must see that these cannot be
// used, so GCC, which has no other way, deletes them and prints no sentence.
#if defined(__clang__)
#define COIL_DELETE_CONVERSION(sentence) COIL_DELETE(sentence)
#else
#define COIL_DELETE_CONVERSION(sentence) = delete
#endif
#if defined(__cpp_deleted_function) && defined(__clang__)
#define COIL_DELETE_COPY(sentence)                                                                 \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc++26-extensions\"") =  \
        delete (sentence)_Pragma("clang diagnostic pop")
#else
#define COIL_DELETE_COPY(sentence) = delete
#endif

// The same for other members of classes, which constraints must not consider usable.
#if defined(__cpp_deleted_function) && defined(__clang__)
#define COIL_DELETE_MEMBER(sentence)                                                               \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc++26-extensions\"") =  \
        delete (sentence)_Pragma("clang diagnostic pop")
#elif defined(__clang__)
#define COIL_DELETE_MEMBER(sentence) = delete
#else
#define COIL_DELETE_MEMBER(sentence) __attribute__((unavailable(sentence)))
#endif

// Attribute of a class: the compiler warns about an unused variable of this type, even though it
// has a destructor.
#define COIL_WARN_UNUSED [[gnu::warn_unused]]

// An address that shows how far the stack has grown. The address of the function's stack frame does
// so too, but a function that reads it needs a frame pointer, which slows down each resumption of a
// coroutine.
#if defined(__has_builtin)
#if __has_builtin(__builtin_stack_address)
#define COIL_STACK_ADDRESS __builtin_stack_address()
#endif
#endif
#if !defined(COIL_STACK_ADDRESS)
#define COIL_STACK_ADDRESS __builtin_frame_address(0)
#endif

#if !defined(COIL_AWAIT_ELIDABLE)
#define COIL_AWAIT_ELIDABLE
#endif
#if !defined(COIL_LIFETIMEBOUND)
#define COIL_LIFETIMEBOUND
#endif

namespace coil::detail {

/// Prefetches the cache line of `address` for writing, so that a load before the store does not
/// fetch it in shared state first.
inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
    // Compilers emit this instruction for the builtin only if the target processor is known to have
    // it. On a processor without it, it has no effect.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
}

} // namespace coil::detail
