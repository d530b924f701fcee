// expect: its elements can: pass g.next()

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }
coil::async_generator<int> numbers() { co_yield 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto all = numbers();
    co_await coil::when_all(all.next(), work());
#else
    auto all = numbers();
    co_await coil::when_all(all, work());
#endif
}
