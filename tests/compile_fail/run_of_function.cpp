// expect: run takes a task: call the function, run(co_main())
#include <coil/coil.hpp>

coil::task<int> co_main() { co_return 0; }

int main() {
#ifdef COIL_EXPECT_OK
    return coil::run(co_main());
#else
    coil::run(co_main);
#endif
}
