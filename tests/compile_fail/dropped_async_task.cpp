// expect: dropping an async_task detaches it

#include <coil/coil.hpp>

coil::async_task<int> work();

void caller() {
#if defined(COIL_EXPECT_OK)
    work().then([](int) {});
#else
    work();
#endif
}
