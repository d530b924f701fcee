// expect: this is a function, not an awaitable: call it, f()

#include <coil/coil.hpp>

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn([]() -> coil::task<> { co_return; }());
    co_await s.join();
#else
    coil::scope s;
    s.spawn([]() -> coil::task<> { co_return; });
    co_await s.join();
#endif
}
