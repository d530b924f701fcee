#pragma once

#include <coil/exec/detail/thread_per_work.hpp>

namespace coil {

/// A new thread for everything it is given.
///
///     new_thread_executor ex;
///     ex.execute([] { talk_for_an_hour(); });   // returns at once
///     ex.join();                                // optional: waits until no thread runs
///
/// execute() throws std::system_error when no thread is to be had; the function is then destroyed.
/// Each time that an async_task goes on after a wait, it is on another thread.
///
/// Threading: any thread. No thread outlives the executor: the destructor waits until all functions
/// have returned. On one of its own threads it waits for the others. What they submit meanwhile
/// runs as well, and is waited for; after stop() it is dropped.
class new_thread_executor : public detail::thread_per_work {};

} // namespace coil
