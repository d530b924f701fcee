// expect: did you forget to co_await? Only that calls the function

#include <coil/coil.hpp>

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::blocking([] {});
#else
    coil::blocking([] {});
    co_return;
#endif
}
