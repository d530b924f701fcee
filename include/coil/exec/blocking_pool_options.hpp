#pragma once

#include <coil/base/std_chrono.hpp>

#include <cstddef>
#include <string>

namespace coil {

/// Options of a blocking_pool.
struct blocking_pool_options {
    /// The maximum number of threads. They mostly sleep in the kernel, so there may be many more
    /// than processors; each takes the memory that its stack has touched. 0 counts as 1.
    unsigned threads = 512;
    /// The maximum number of queued calls. Further calls wait for space: coroutines are suspended
    /// and served in order, callers of execute() block. 0 counts as 1.
    std::size_t queue = 65'536;
    /// A thread that has been idle for this long exits.
    std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
    /// The name of the threads in `top -H` and debuggers; at most 15 characters.
    std::string name = "coil-blocking";
};

} // namespace coil
