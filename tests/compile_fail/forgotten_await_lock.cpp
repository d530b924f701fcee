// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    co_await m.lock();
    m.unlock();
#else
    m.lock();
    co_return;
#endif
}
