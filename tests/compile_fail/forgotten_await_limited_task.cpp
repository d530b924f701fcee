// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout(work(), 1s);
#else
    coil::timeout(work(), 1s);
    co_return;
#endif
}
