// expect: this is a function, not an awaitable: call it, f()

#include <coil/coil.hpp>

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::when_any([]() -> coil::task<> { co_return; }());
#else
    co_await coil::when_any([]() -> coil::task<> { co_return; });
#endif
}
