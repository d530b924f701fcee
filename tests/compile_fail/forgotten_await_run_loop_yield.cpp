// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(coil::run_loop& loop) {
#if defined(COIL_EXPECT_OK)
    co_await loop.yield();
#else
    loop.yield();
    co_return;
#endif
}
