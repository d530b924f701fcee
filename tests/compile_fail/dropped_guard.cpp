// expect: the mutex is unlocked at once
// only: clang

#include <coil/coil.hpp>

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    co_await m.lock_guard();
#endif
}
