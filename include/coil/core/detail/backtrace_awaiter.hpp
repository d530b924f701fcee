#pragma once

#include <coil/core/detail/promise_base.hpp>

#include <concepts>
#include <coroutine>
#include <span>
#include <string>
#include <vector>

namespace coil {

struct backtrace_entry;
struct task_backtrace;

namespace detail {

/// The function that resumes a suspended or running coroutine: the first word of its frame.
[[nodiscard]] inline const void* resume_function(const void* frame) noexcept {
    return *static_cast<const void* const*>(frame);
}
/// For a coroutine at its final suspension point, where the first word is null: the function that
/// destroys it.
[[nodiscard]] inline const void* ended_function(const void* frame) noexcept {
    return static_cast<const void* const*>(frame)[1];
}
/// The frame of a task, whose promise follows the two functions at its start.
[[nodiscard]] inline void* frame_of(promise_base& promise) noexcept {
    return static_cast<void*>(reinterpret_cast<void**>(&promise) - 2);
}

/// The name of a function, its module and its address there. Reads the symbols from the module's
/// file.
[[nodiscard]] backtrace_entry find_symbol(const void* function);
/// Whether the entry is not a coroutine but a callback_coroutine of coil.
[[nodiscard]] bool is_internal(const backtrace_entry& entry) noexcept;
/// The functions at these addresses, except those for which is_internal() returns true.
[[nodiscard]] std::vector<backtrace_entry> symbols_of(std::span<const void* const> positions);
/// Appends the entry as `read(int) [server+0x1a2b]`.
void append_to(std::string& text, const backtrace_entry& entry);

} // namespace detail

namespace this_task::detail {

/// A coroutine and those that wait for it, as their resume functions.
struct raw_backtrace {
    std::vector<const void*> functions;
    std::string name;

    void begin(const void* frame);
    void follow(coil::detail::promise_base& promise);
};

class [[nodiscard("did you forget to co_await?")]] backtrace_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) {
        trace_.begin(self.address());
        if constexpr (std::derived_from<P, coil::detail::promise_base>) {
            trace_.follow(self.promise());
        }
        return false;
    }
    [[nodiscard]] task_backtrace await_resume() const;

private:
    raw_backtrace trace_;
};

} // namespace this_task::detail

} // namespace coil
