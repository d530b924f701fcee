#pragma once

namespace coil::detail {

class event_loop;

/// The loop that runs on this thread, or null.
constinit inline thread_local event_loop* current_loop = nullptr;

[[noreturn]] void end_without_context() noexcept;
/// Terminates a program that cannot continue: prints "coil: " and the sentence on stderr, then what
/// runs on this thread (the task, its chain of awaits, the stack), as far as known, and aborts.
[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

/// Returns *current_loop. On a thread that runs no loop, terminates the program with a message: an
/// await of coil needs a context.
inline event_loop& required_loop() noexcept {
    if (current_loop == nullptr) [[unlikely]] {
        end_without_context();
    }
    return *current_loop;
}

} // namespace coil::detail
