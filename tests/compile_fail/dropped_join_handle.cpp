// expect: use co_spawn to say so

#include <coil/coil.hpp>

coil::task<> work() { co_return; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::co_spawn(work());
#else
    coil::spawn(work());
#endif
    co_return;
}
