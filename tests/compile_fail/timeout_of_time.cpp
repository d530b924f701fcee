// expect: this is a time point, not a duration: write timeout_at(work, time)

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::timeout_at(work(), std::chrono::steady_clock::now());
#else
    co_await coil::timeout(work(), std::chrono::steady_clock::now());
#endif
}
