// expect: std::scoped_lock does not co_await: lock coil's mutexes one after the other

#include <coil/coil.hpp>

#include <mutex>

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    std::mutex other;
    const std::scoped_lock guard(other, m);
    co_return;
#endif
}
