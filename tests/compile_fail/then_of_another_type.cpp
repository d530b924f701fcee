// expect: then(f): f takes the task's result

#include <coil/coil.hpp>

struct other {};

void caller(coil::async_task<int>& t) {
#if defined(COIL_EXPECT_OK)
    t.then([](int) {});
#else
    t.then([](other) {});
#endif
}
