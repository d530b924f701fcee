// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<> work();

coil::task<> caller(coil::looper_executor& ex) {
#if defined(COIL_EXPECT_OK)
    co_await coil::on(ex, work());
#else
    coil::on(ex, work());
    co_return;
#endif
}
