// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::async_generator<int> numbers() { co_yield 1; }

coil::task<> caller() {
    auto all = numbers();
#if defined(COIL_EXPECT_OK)
    co_await all.next();
#else
    all.next();
    co_return;
#endif
}
