// expect: a generator only computes and cannot co_await: make it an async_generator

#include <coil/coil.hpp>

#if defined(COIL_EXPECT_OK)
coil::async_generator<int> numbers() {
#else
coil::generator<int> numbers() {
#endif
    co_yield co_await coil::io::nop();
}
