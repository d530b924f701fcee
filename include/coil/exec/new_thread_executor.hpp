#pragma once

#include <coil/exec/detail/thread_per_work.hpp>

namespace coil {

/// Runs each function on a new thread.
///
///     new_thread_executor ex;
///     ex.execute([] { talk_for_an_hour(); });   // returns immediately
///     ex.join();                                // optional: waits until no thread runs
///
/// An async_task on it resumes on another new thread after each await.
///
/// Threading: all members may be called from any thread. The destructor waits until all functions
/// have returned and their threads have ended. A function that destroys the executor is not waited
/// for: its thread alone outlives the executor. Functions submitted during the wait run and are
/// waited for as well; after stop() they are dropped.
///
/// Errors: execute() throws std::system_error if no thread can be created; the function is then
/// destroyed.
class new_thread_executor : public detail::thread_per_work {};

} // namespace coil
