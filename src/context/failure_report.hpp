#pragma once

#include <coil/core/detail/promise_base.hpp>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace coil::detail {

/// Prints what follows the line of end_with_misuse() or of a failed COIL_ASSERT: the task that runs
/// on this thread, the chain of awaits from its current coroutine up, and the thread's stack, each
/// as far as known. The names are looked up in the symbols of the program's file, which takes
/// memory; so the line that says what has failed is printed first.
///
/// A failure inside this function prints nothing more. If several threads fail simultaneously, the
/// first one prints, and the others wait for it for a limited time.
void print_running_task() noexcept;

/// ", in FUNCTION [MODULE+OFFSET], task 'NAME' spawned at FILE:LINE" of a suspended coroutine, each
/// part as far as known. For a child without a coroutine, such as the await in a timeout(), the
/// function is the coroutine that awaits the timeout().
[[nodiscard]] std::string describe_suspended(const void* frame);

/// Prints the functions of a chain of awaits, if there are any, under a title.
void print_functions(const char* title, std::span<const void* const> functions) noexcept;

/// The function that finds, on a thread that runs no context, the root of the tree that an executor
/// runs there (or null). Null unless the executors are linked, which set it.
constinit inline std::atomic<const promise_base* (*)() noexcept> root_on_executor{nullptr};

} // namespace coil::detail
