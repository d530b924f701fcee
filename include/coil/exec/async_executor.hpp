#pragma once

#include <coil/exec/detail/thread_per_work.hpp>

namespace coil {

/// Runs each function immediately on a new thread, like std::async(std::launch::async, f), but
/// without a future. (The destructor of std::async's future waits, so a program that ignores the
/// futures runs its functions one after the other.)
///
///     async_executor ex;
///     ex.execute([] { compress(); });   // returns immediately
///
/// Threading: all members may be called from any thread. The destructor, like join(), waits until
/// all functions have returned and their threads have ended. A function that destroys the executor
/// is not waited for: its thread alone outlives the executor. Functions submitted during the wait
/// run and are waited for as well; after stop() they are dropped.
///
/// Errors: execute() throws std::system_error if no thread can be created; the function is then
/// destroyed.
class async_executor : public detail::thread_per_work {};

} // namespace coil
