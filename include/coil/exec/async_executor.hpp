#pragma once

#include <coil/exec/detail/thread_per_work.hpp>

namespace coil {

/// What std::async(std::launch::async, f) does without its future: each function runs at once, on a
/// thread of its own, and nothing waits for it before the executor's end. (The destructor of such a
/// future waits, so that one after the other would run.)
///
/// execute() throws std::system_error when no thread is to be had; the function is then destroyed.
///
/// Threading: any thread. No thread outlives the executor: the destructor waits until all functions
/// have returned, as join() does. On one of its own threads it waits for the others. What they
/// submit meanwhile runs as well, and is waited for; after stop() it is dropped.
class async_executor : public detail::thread_per_work {};

} // namespace coil
