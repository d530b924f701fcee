// expect: std::scoped_lock does not co_await

#include <coil/coil.hpp>

#include <mutex>

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    const std::scoped_lock guard(m);
    co_return;
#endif
}
