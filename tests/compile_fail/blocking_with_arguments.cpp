// expect: blocking(f) calls f with nothing, or with an inplace_stop_token

#include <coil/coil.hpp>

int twice(int n) { return 2 * n; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::blocking([] { return twice(1); });
#else
    co_await coil::blocking(twice);
#endif
}
