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
/// Threading: all members may be called from any thread. No thread outlives the executor: the
/// destructor, like join(), waits until all functions have returned. Called on one of its own
/// threads, it waits for the others. Functions submitted during that wait run and are waited for as
/// well; after stop() they are dropped.
///
/// Errors: execute() throws std::system_error if no thread can be created; the function is then
/// destroyed.
class async_executor : public detail::thread_per_work {};

} // namespace coil
