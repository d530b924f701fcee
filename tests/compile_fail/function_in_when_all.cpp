// expect: this is a function, not an awaitable: call it, f()

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::when_all(work(), work());
#else
    co_await coil::when_all(work, work());
#endif
}
