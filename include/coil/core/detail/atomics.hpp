#pragma once

#include <atomic>
#include <thread>

namespace coil::detail {

/// The default for the `Atomics` parameter of every synchronisation algorithm: the atomics and
/// thread functions that it uses. The tests substitute those of a model checker, which executes
/// every interleaving of the same code and every value that a load may return (tests/model).
struct std_atomics {
    template <class T>
    using atomic = std::atomic<T>;

    using thread_id = std::thread::id;
    static thread_id this_thread() noexcept { return std::this_thread::get_id(); }
    static void yield() noexcept { std::this_thread::yield(); }
};

} // namespace coil::detail
