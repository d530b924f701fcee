#pragma once

#include <coil/base/assert.hpp>

#include <cerrno>
#include <string_view>

// Messages on stderr about mistakes that a program survives. Inline code calls these functions
// where assertions are enabled (base/assert.hpp); the library contains them in every build.

namespace coil::detail {

/// The number of destructions of suspended coroutines in progress on this thread. Tasks that are
/// destroyed with such a frame were not forgotten by the program, so they are not reported.
constinit inline thread_local unsigned destructions_of_frames = 0;

class destroying_frames {
public:
    destroying_frames() noexcept { ++destructions_of_frames; }
    destroying_frames(const destroying_frames&) = delete;
    destroying_frames& operator=(const destroying_frames&) = delete;
    ~destroying_frames() { --destructions_of_frames; }
};

/// Whether objects of coroutines are destroyed for a reason other than the end of their scope: an
/// exception, a shutdown, or the destruction of a suspended coroutine.
[[nodiscard]] bool is_cleaning_up() noexcept;

/// Returns true for the first call with this function of a coroutine. Throws std::bad_alloc.
[[nodiscard]] bool is_first_report_of(const void* function);

/// Reports that a task is destroyed without having run: once for each coroutine function, and not
/// if is_cleaning_up().
[[gnu::cold]] void report_unrun_task(const void* frame) noexcept;

/// Reports that a coroutine whose promise has no stop token awaits an operation. Called once for
/// each type of promise. `type`: the __PRETTY_FUNCTION__ of a template with the parameter `P`.
[[gnu::cold]] void report_no_stop_token(const void* frame, std::string_view type) noexcept;

/// Reports that a registered buffer is used on a context other than its own.
[[gnu::cold]] void report_foreign_buffer() noexcept;

/// Reports that the flags of send(2) or recv(2) seem to be the length of the buffer: once for each
/// value of the flags, for at most sixteen values.
[[gnu::cold]] void report_length_as_flags(int flags) noexcept;

/// Overwrites errno, which no await preserves: strerror() then says "Unknown error 9999". Has no
/// effect in release builds.
inline void poison_errno() noexcept {
#if COIL_ASSERTIONS
    errno = 9999;
#endif
}

} // namespace coil::detail
