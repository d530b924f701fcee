// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<int> answer() { co_return 42; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await answer();
#else
    answer();
    co_return;
#endif
}
