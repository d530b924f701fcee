// expect: temporary
// only: clang

#include <coil/coil.hpp>

coil::async_generator<int> numbers() { co_yield 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto all = numbers();
    auto next = all.next();
    co_await next;
#else
    auto next = numbers().next();
    co_await next;
#endif
}
