// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(coil::looper_executor& ex) {
#if defined(COIL_EXPECT_OK)
    co_await coil::schedule(ex);
#else
    coil::schedule(ex);
    co_return;
#endif
}
