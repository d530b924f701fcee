// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::yield();
#else
    coil::yield();
    co_return;
#endif
}
