// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> caller(coil::looper_executor& ex) {
#if defined(COIL_EXPECT_OK)
    co_await coil::resume_on(ex);
#else
    coil::resume_on(ex);
    co_return;
#endif
}
