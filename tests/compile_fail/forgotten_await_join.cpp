// expect: did you forget to co_await?

#include <coil/coil.hpp>

coil::task<int> work() { co_return 1; }

coil::task<> caller() {
    using namespace std::chrono_literals;
#if defined(COIL_EXPECT_OK)
    coil::scope s;
    s.spawn(work());
    co_await s.join();
#else
    coil::scope s;
    s.spawn(work());
    s.join();
    co_return;
#endif
}
