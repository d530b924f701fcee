// expect: did you forget to co_await?
#include <coil/coil.hpp>

coil::task<> user() {
#ifdef COIL_EXPECT_OK
    (void)co_await coil::this_task::stop_token();
#else
    coil::this_task::stop_token();
    co_return;
#endif
}
