#pragma once

#include <atomic>

namespace coil::detail {

/// What a hand-shake between threads is written over: a class template whose parameter says which
/// atomics it uses. The library has these; the tests have a model checker's, which plays every
/// interleaving of the same code and every value that a load may see (tests/model).
struct std_atomics {
    template <class T>
    using atomic = std::atomic<T>;
};

} // namespace coil::detail
