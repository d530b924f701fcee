#pragma once

#include <atomic>
#include <thread>

namespace coil::detail {

/// The template parameter of every hand-shake between threads: the atomics and the threads that it
/// uses. The library uses these. The tests use a model checker's, which execute every interleaving
/// of the same code and every value that a load may return (tests/model).
struct std_atomics {
    template <class T>
    using atomic = std::atomic<T>;

    using thread_id = std::thread::id;
    static thread_id this_thread() noexcept { return std::this_thread::get_id(); }
    static void yield() noexcept { std::this_thread::yield(); }
};

} // namespace coil::detail
