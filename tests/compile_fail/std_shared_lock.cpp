// expect: std::shared_lock does not co_await

#include <coil/coil.hpp>

#include <shared_mutex>

coil::task<> caller(coil::shared_mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.shared_lock_guard();
#else
    const std::shared_lock guard(m);
    co_return;
#endif
}
