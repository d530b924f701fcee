// expect: when_any() of nothing would wait forever

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    co_await coil::when_any(work());
#else
    co_await coil::when_any();
#endif
}
