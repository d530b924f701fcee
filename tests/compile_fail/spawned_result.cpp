// expect: co_spawn takes a task<>, which has no result: spawn(t) returns a handle to the result

#include <coil/coil.hpp>

coil::task<int> answer() { co_return 42; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto handle = coil::spawn(answer());
    co_await handle;
#else
    coil::co_spawn(answer());
    co_return;
#endif
}
