// expect: did you forget to co_await? Only that calls the function

#include <coil/coil.hpp>

coil::task<> caller(coil::blocking_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await coil::asyncify([] {}, pool);
#else
    coil::asyncify([] {}, pool);
    co_return;
#endif
}
