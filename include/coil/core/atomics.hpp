#pragma once

#include <atomic>
#include <thread>

namespace coil::detail {

/// What a hand-shake between threads is written over: a class template whose parameter says which
/// atomics and threads it uses. The library has these; the tests have a model checker's, which
/// plays every interleaving of the same code and every value that a load may see (tests/model).
struct std_atomics {
    template <class T>
    using atomic = std::atomic<T>;

    using thread_id = std::thread::id;
    static thread_id this_thread() noexcept { return std::this_thread::get_id(); }
    static void yield() noexcept { std::this_thread::yield(); }
};

} // namespace coil::detail
