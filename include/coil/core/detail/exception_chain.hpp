#pragma once

#include <array>
#include <cstddef>
#include <exception>

namespace coil::detail {

class promise_base;

/// The coroutines that an exception has left, the innermost first, by their resume functions. Their
/// frames may have been destroyed.
struct exception_chain {
    static constexpr std::size_t most = 24;
    std::array<const void*, most> functions{}; // the first ones if the chain is longer
    std::size_t size = 0;                      // of the whole chain
};

/// Called by the promise of a coroutine that the current exception leaves: adds the coroutine to
/// the exception's chain, which this thread keeps for the last few exceptions. A task resumes the
/// coroutine that awaits it, so the next addition is that coroutine's; any other addition begins a
/// new chain. Returns the exception.
[[gnu::cold]] std::exception_ptr note_unhandled(promise_base& promise, const void* frame) noexcept;
/// The same for a task.
[[gnu::cold]] std::exception_ptr note_unhandled(promise_base& task) noexcept;

/// The coroutines that the exception has left on this thread, as far as the thread still keeps
/// them.
[[nodiscard]] exception_chain chain_of(const std::exception_ptr& error) noexcept;

} // namespace coil::detail
