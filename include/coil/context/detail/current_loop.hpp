#pragma once

namespace coil::detail {

class event_loop;

/// The loop that runs on this thread.
constinit inline thread_local event_loop* current_loop = nullptr;

[[noreturn]] void end_without_context() noexcept;
/// A program that cannot continue: "coil: " and the sentence on stderr, then std::abort().
[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

/// current_loop, or a message that explains that a coil await needs a context around it.
inline event_loop& required_loop() noexcept {
    if (current_loop == nullptr) [[unlikely]] {
        end_without_context();
    }
    return *current_loop;
}

} // namespace coil::detail
