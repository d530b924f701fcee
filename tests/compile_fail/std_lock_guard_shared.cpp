// expect: std::lock_guard does not co_await

#include <coil/coil.hpp>

#include <mutex>

coil::task<> caller(coil::shared_mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    const std::lock_guard guard(m);
    co_return;
#endif
}
